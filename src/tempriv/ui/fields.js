/** One field of a form: a label, a control, its unit, a hint, and a place for what is wrong. */

import { el, fill, newId } from "./dom.js";
import { duration, isoSeconds, number } from "./format.js";

const GROUPED = /^-?\d{1,3}(,\d{3})+$/;
const PLAIN = /^-?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?$/i;
const SHORT = ["integer", "number", "duration", "check"]; // two of them fit beside each other
const SPANS = [["1", "seconds"], ["60", "minutes"], ["3600", "hours"], ["86400", "days"]];

/**
 * definition: {name, label, type, value, hint, unit, min, max, above, options, required, most, rows, many, wide, missing, note}
 * type: text, integer, number, duration (value in seconds), choice, check, lines, numbers, json, moment
 * note: name of a sentence that goes with the present value, one of NOTES.
 * Gives {node, name, value(), set(v), check() -> sentence or "", say(sentence), focus()}.
 */
export function makeField(definition) {
  const id = newId(definition.name);
  const control = CONTROLS[definition.type](definition, id);
  const error = el("p", { class: "error", id: `${id}-error`, "aria-live": "polite" });
  const told = el("span", { class: "told" });
  const hint = el("p", { class: "hint", id: `${id}-hint` }, definition.hint, " ", told);
  for (const input of control.inputs) input.setAttribute("aria-describedby", `${id}-hint ${id}-error`);

  function say(sentence) {
    error.textContent = sentence;
    for (const input of control.inputs) input.setAttribute("aria-invalid", sentence ? "true" : "false");
  }
  function check() {
    const { problem, value } = control.read();
    say(problem ?? "");
    told.textContent = problem || !definition.note ? "" : NOTES[definition.note](value);
    return problem ?? "";
  }
  const label = el("label", { for: id }, definition.label);
  const short = SHORT.includes(definition.type) && !definition.wide ? "field short" : "field";
  const node = definition.type === "check"
    ? el("div", { class: short }, el("div", { class: "tick" }, control.node, label), hint, error)
    : el("div", { class: short }, label, control.node, hint, error);
  if (definition.note) check();
  return {
    node, check, say, name: definition.name,
    value: () => control.read().value,
    set(value) {
      control.write(value);
      say("");
    },
    focus: () => control.inputs[0].focus(),
  };
}

/** Sentences that explain a value while it is typed. */
const NOTES = {
  odds(epsilon) {
    const factor = Math.exp(epsilon);
    const times = factor < 1e6 ? `${number(Number(factor.toPrecision(2)))} times` : "more than a million times";
    return `At ${number(epsilon)}, whatever is sent is at most ${times} as likely with one truth as with another.`;
  },
};

const good = (value) => ({ value });
const bad = (problem) => ({ problem });

/** Thousands may be set apart by commas; a decimal comma is refused, not misread. */
export function numberOf(typed, { whole = false } = {}) {
  const given = typed.trim().replace(/[\s\u00a0\u202f]/g, "");
  if (given === "") return bad("Give a number.");
  if (whole && GROUPED.test(given)) return good(Number(given.replaceAll(",", "")));
  if (given.includes(",")) return bad(`${typed.trim()}: write a decimal point, as in 0.5, and no commas.`);
  if (!PLAIN.test(given)) return bad(`${typed.trim()}: is no number.`);
  const value = Number(given);
  if (whole && !Number.isSafeInteger(value)) return bad(`${typed.trim()}: must be a whole number.`);
  return Number.isFinite(value) ? good(value) : bad(`${typed.trim()}: is too large.`);
}

function within(found, { min, max, above }) {
  if (found.problem) return found;
  const { value } = found;
  const shown = value.toLocaleString("en", { maximumFractionDigits: 6 });
  const limit = (x) => x.toLocaleString("en");
  if (above !== undefined && value <= above) return bad(`${shown}: must be above ${limit(above)}.`);
  if (min !== undefined && value < min) return bad(`${shown}: must be at least ${limit(min)}.`);
  if (max !== undefined && value > max) return bad(`${shown}: must be at most ${limit(max)}.`);
  return found;
}

const textInput = (definition, id, more = {}) => el("input", {
  id, name: definition.name, type: "text", autocomplete: "off", spellcheck: "false",
  required: definition.required, ...more,
});

function numeric(whole) {
  return (definition, id) => {
    const input = textInput(definition, id, { inputmode: whole ? "numeric" : "decimal", class: "figure" });
    const write = (value) => {
      input.value = value === "" ? "" : whole ? value.toLocaleString("en") : String(value);
    };
    const read = () => within(numberOf(input.value, { whole }), definition);
    write(definition.value);
    input.addEventListener("blur", () => {
      const { problem, value } = read();
      if (!problem) write(value);
    });
    const unit = definition.unit && el("span", { class: "unit" }, definition.unit);
    return { node: el("div", { class: "measured" }, input, unit), inputs: [input], read, write };
  };
}

function text(definition, id) {
  const input = textInput(definition, id, { maxlength: definition.most });
  input.value = definition.value;
  const read = () => {
    const value = input.value.trim();
    return definition.required && !value ? bad(definition.missing ?? "Give a text.") : good(value);
  };
  return { node: input, inputs: [input], read, write: (value) => { input.value = value; } };
}

function choice(definition, id) {
  const select = el("select", { id, name: definition.name },
    definition.options.map(([value, words]) => el("option", { value }, words)));
  select.value = definition.value;
  return {
    node: el("div", { class: "chosen" }, select), inputs: [select],
    read: () => good(select.value), write: (value) => { select.value = value; },
  };
}

function tick(definition, id) {
  const input = el("input", { id, name: definition.name, type: "checkbox" });
  input.checked = definition.value;
  return { node: input, inputs: [input], read: () => good(input.checked), write: (value) => { input.checked = value; } };
}

function span(definition, id) {
  const input = textInput(definition, id, { inputmode: "decimal", class: "figure" });
  const unit = el("select", { "aria-label": `${definition.label}: unit`, name: `${definition.name}-unit` },
    SPANS.map(([size, words]) => el("option", { value: size }, words)));
  const write = (seconds) => {
    const [size] = SPANS.findLast(([each]) => seconds >= Number(each) && seconds % Number(each) === 0) ?? SPANS[0];
    unit.value = size;
    input.value = String(seconds / Number(size));
  };
  const read = () => {
    const found = within(numberOf(input.value), { above: 0 });
    if (found.problem) return found;
    const seconds = found.value * Number(unit.value);
    if (seconds < definition.min) return bad(`Must be at least ${duration(definition.min)}.`);
    if (seconds > definition.max) return bad(`Must be at most ${duration(definition.max)}.`);
    return good(seconds);
  };
  write(definition.value);
  return { node: el("div", { class: "measured" }, input, el("div", { class: "chosen" }, unit)), inputs: [input, unit], read, write };
}

function lines(definition, id) {
  const area = el("textarea", { id, name: definition.name, rows: definition.rows ?? 5, spellcheck: "false" });
  const write = (values) => { area.value = values.join("\n"); };
  const read = () => {
    const values = area.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const twice = values.find((value, i) => values.indexOf(value) < i);
    if (twice !== undefined) return bad(`“${twice}” is there twice.`);
    if (values.length === 1 || (definition.required && values.length < 2)) return bad("Give at least two, one on each line.");
    if (values.length > definition.most) return bad(`${values.length}: must be at most ${definition.most}.`);
    return good(values);
  };
  write(definition.value);
  return { node: area, inputs: [area], read, write };
}

/** Numbers in a row, set apart by spaces or semicolons; none is allowed unless `many` are wanted. */
function numbers(definition, id) {
  const input = textInput(definition, id, { inputmode: "text" });
  const write = (values) => { input.value = values.join(" "); };
  const read = () => {
    const values = [];
    for (const word of input.value.split(/[\s;]+/).filter(Boolean)) {
      const { problem, value } = numberOf(word);
      if (problem) return bad(problem);
      values.push(value);
    }
    if (definition.many && values.length !== definition.many) return bad(`Give ${definition.many} numbers, with spaces between them.`);
    return good(values);
  };
  write(definition.value);
  const unit = definition.unit && el("span", { class: "unit" }, definition.unit);
  return { node: el("div", { class: "measured wide" }, input, unit), inputs: [input], read, write };
}

function json(definition, id) {
  const area = el("textarea", { id, name: definition.name, rows: 7, spellcheck: "false", class: "code" });
  area.value = definition.value;
  const read = () => {
    try {
      const value = JSON.parse(area.value);
      if (value && typeof value === "object" && typeof value.is === "string") return good(value);
    } catch {
      return bad("This is not JSON yet: check quotes, commas and brackets.");
    }
    return bad("Must be an object with “is”: the name of a mechanism.");
  };
  return { node: area, inputs: [area], read, write: (value) => { area.value = value; } };
}

/** A local moment, or nothing. Value: an ISO text in UTC, or null. */
function moment(definition, id) {
  const input = el("input", { id, name: definition.name, type: "datetime-local" });
  const read = () => {
    if (input.validity.badInput) return bad("Give a date and a time, or leave both empty.");
    if (!input.value) return good(null);
    return good(isoSeconds(new Date(input.value).getTime()));
  };
  return { node: input, inputs: [input], read, write: (value) => { input.value = value ?? ""; } };
}

const CONTROLS = {
  text, choice, lines, numbers, json, moment,
  integer: numeric(true), number: numeric(false), duration: span, check: tick,
};

/** A group of fields under a heading; those that few need are folded away. */
export function fieldGroup(title, fields, folded = false) {
  const nodes = fields.map((field) => field.node);
  if (folded) return el("details", { class: "fold" }, el("summary", {}, title), el("div", { class: "fields" }, nodes));
  return fill(el("fieldset", {}), el("legend", {}, title), el("div", { class: "fields" }, nodes));
}
