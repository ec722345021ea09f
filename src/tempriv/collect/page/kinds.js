/** The four kinds of campaigns: their fields with defaults, and the plan that comes of them. */

import { count, duration, number } from "./format.js";

const MOST_PEOPLE = 2 ** 32;
const ORACLES = [
  ["automatic", "Automatic: the least noise for this epsilon"],
  ["grr", "GRR: randomised response"],
  ["oue", "OUE: optimised unary encoding"],
  ["olh", "OLH: optimised local hashing"],
  ["hadamard", "Hadamard response"],
];

export const times = (epsilon) => {
  const factor = Math.exp(epsilon);
  return factor < 1e6 ? `${number(Number(factor.toPrecision(2)))} times` : "more than a million times";
};

const epsilonField = (value, what) => ({
  name: "epsilon", label: "Epsilon", type: "number", unit: "privacy loss (no unit)", value, above: 0, max: 100, wide: true,
  hint: `How much ${what} may give away. Smaller is more private and less precise; 0.5 to 4 is usual.`,
  tell: (epsilon) => `At ${number(epsilon)}, whatever is sent is at most ${times(epsilon)} as likely with one truth as with another.`,
});

export function commonFields(kind, enrolled) {
  const stream = kind === "stream";
  return {
    about: [
      { name: "title", label: "Title", type: "text", value: "", required: true, most: 200, missing: "Give it a title.",
        hint: "Short and plain; people who own the devices see it." },
      { name: "asks", label: "What is asked", type: "text", value: ASKS[kind], required: true, most: 2000,
        hint: "One sentence in plain words, for the owners of the devices." },
      { name: "people", label: "Devices", type: "integer", wide: true, unit: "devices", value: enrolled || 10_000, min: 1, max: MOST_PEOPLE,
        hint: `How many devices are asked, announced before it starts. ${enrolled ? `${count(enrolled)} are enrolled now.` : "None is enrolled yet."}` },
    ],
    time: [
      { name: "opens", label: "Opens", type: "moment", value: null, hint: "In your local time. Empty: as soon as you start it." },
      { name: "lasts", label: "Ends after", type: "duration", value: stream ? 3 * 3600 : 7 * 86400, min: 10, max: 366 * 86400,
        hint: "Counted from its opening; no answer is taken later. It ends earlier when all is known." },
      { name: "patience", label: "Patience with one question", type: "duration", value: stream ? 25 : 3600, min: 1, max: 366 * 86400,
        hint: stream
          ? "A question closes after this, with the answers that have come in. A step has up to two questions."
          : "A question closes after this, with the answers that have come in; then the next one is asked." },
    ],
  };
}

const ASKS = {
  shapes: "Which shape does the curve on your device have?",
  frequency: "Which of these categories is yours?",
  stream: "Which of these categories is yours at the moment?",
  upload: "Your readings, with noise that is added on your device.",
};

const categories = (value) => ({
  name: "categories", label: "Categories", type: "lines", value, required: true, most: 4096,
  hint: "One on each line. Every device has exactly one of them; add “other” if need be.",
});

const oracle = {
  name: "oracle", label: "How answers are made noisy", type: "choice", value: "automatic", options: ORACLES,
  hint: "All keep the same guarantee; they differ in precision and in the size of an answer.",
};

export const FORMS = {
  shapes: {
    summary: "Which curves are common? Each device turns its series into a few letters, low to high, and answers one noisy question.",
    fields: [
      epsilonField(2, "the one answer of a device, about its whole series,"),
      { name: "shapes", label: "Number of shapes", type: "integer", unit: "shapes", value: 3, min: 1, max: 256,
        hint: "How many of the most common shapes to find. Fewer are found more surely." },
      { name: "symbols", label: "Letters", type: "integer", unit: "letters", value: 4, min: 2, max: 26,
        hint: "Levels from low (a) to high. More letters see finer differences and need more devices." },
      { name: "segment", label: "Readings per letter", type: "integer", unit: "readings", value: 10, min: 1, max: 2 ** 31,
        hint: "The mean of so many readings becomes one letter. For readings every 10 minutes, 6 make an hour." },
      { name: "longest", label: "Longest sequence", type: "integer", unit: "letters", value: 15, min: 1, max: 63,
        hint: "Only the first so many letters of a series count." },
      { name: "readings", label: "Longest series", type: "integer", unit: "readings", value: 1000, min: 1, max: MOST_PEOPLE,
        hint: "The guarantee is for whole series of up to so many readings; of a longer one only the beginning counts." },
      { name: "method", label: "Method", type: "choice", value: "automatic", options: [
        ["automatic", "Automatic"], ["one-shot", "One-shot: ask for whole sequences at once"],
        ["nearest", "Nearest: candidates grow letter by letter"],
        ["published", "Published: PrivShape (Mao et al. 2024, Algorithm 2)"],
        ["baseline", "Baseline (Mao et al. 2024, Algorithm 1)"]],
        hint: "How shapes are found. Automatic takes one-shot where that is possible, else nearest." },
      { name: "distance", label: "Distance", type: "choice", value: "levenshtein", options: [
        ["levenshtein", "Levenshtein: letters put in, left out, exchanged"],
        ["dtw", "Dynamic time warping"], ["euclidean", "Euclidean: position by position"]],
        hint: "How a device judges which candidate is nearest to its own sequence." },
      { name: "labels", label: "Labels (optional)", type: "lines", value: [], rows: 3, most: 1024,
        hint: "One on each line, if devices also know a label and you want the shapes of each. None: leave it empty." },
    ],
    more: [
      { name: "compressed", label: "Merge repeated letters", type: "check", value: true,
        hint: "Then only the order of rises and falls counts, not how fast they came." },
      { name: "partial", label: "A last segment that is cut short", type: "choice", value: "keep",
        options: [["keep", "Counts, by the mean of what is there"], ["drop", "Does not count"]],
        hint: "Where the number of readings is no multiple of the readings per letter." },
      { name: "values", label: "Edges between letters (optional)", type: "numbers", value: [], unit: "standard deviations",
        hint: "In ascending order, one fewer than there are letters. Empty: equally likely cells of the normal law." },
      { name: "low", label: "Shortest sequence", type: "integer", unit: "letters", value: 1, min: 1, max: 64,
        hint: "Lengths below this are not asked about." },
      { name: "breadth", label: "Candidates followed per shape", type: "integer", unit: "candidates", value: 3, min: 1, max: 64,
        hint: "More candidates lose fewer shapes on the way and divide the answers further." },
      { name: "least", label: "Fewest reports of a candidate", type: "integer", unit: "reports", value: 100, min: 0, max: MOST_PEOPLE,
        hint: "Of the baseline method only: candidates with fewer are dropped." },
      { name: "shares", label: "Devices for lengths, pairs, tree, last round", type: "numbers", many: 4, value: [2, 8, 70, 20], unit: "% each",
        hint: "Four percentages, together 100. Methods that need less of one take it for the rest." },
    ],
    problems(values) {
      const found = {};
      const most = Math.floor(63 / Math.ceil(Math.log2(values.symbols)));
      if (values.longest > most) found.longest = `With ${values.symbols} letters, at most ${most} fit.`;
      if (values.low > values.longest) found.low = "Must be at most the longest sequence.";
      if (Math.abs(values.shares.reduce((a, b) => a + b) - 100) > 1e-6 || values.shares.some((x) => x <= 0)) found.shares = "Must be four parts above 0, together 100 %.";
      if (values.values.length && values.values.length !== values.symbols - 1) found.values = `Must be ${values.symbols - 1} edges for ${values.symbols} letters, or none.`;
      if (values.values.some((x, i) => i > 0 && x <= values.values[i - 1])) found.values = "Must be in ascending order.";
      return found;
    },
    plan: (values) => ({
      epsilon: values.epsilon, shapes: values.shapes, people: values.people,
      sax: {
        symbols: values.symbols, segment: values.segment, compressed: values.compressed, partial: values.partial,
        longest: values.longest, values: values.values.length ? values.values : null,
      },
      distance: values.distance, method: values.method, labels: values.labels, low: values.low,
      breadth: values.breadth, least: values.least,
      shares: values.shares.map((part) => part / 100), readings: values.readings,
    }),
  },

  frequency: {
    summary: "How common is each category? Each device sends one noisy answer, once.",
    fields: [epsilonField(1, "the one answer of a device"), categories(["none", "some", "a lot"])],
    more: [oracle],
    problems: () => ({}),
    plan: (values) => ({ categories: values.categories, oracle: values.oracle }),
  },

  stream: {
    summary: "How common is each category, step after step? Any window of steps gives away at most epsilon.",
    fields: [
      epsilonField(1, "all that a device sends within a window"),
      categories(["at home", "on the way", "at work", "elsewhere"]),
      { name: "window", label: "Window", type: "integer", unit: "steps", value: 20, min: 1, max: 2 ** 20,
        hint: "Epsilon holds for everything within any so many steps in a row. Longer protects more and is less precise." },
      { name: "every", label: "A step every", type: "duration", value: 60, min: 1, max: 86400 * 31,
        hint: "How often there is a new histogram." },
      { name: "steps", label: "Steps", type: "integer", unit: "steps", value: 100, min: 1, max: 2 ** 20,
        hint: "After so many it is over." },
      { name: "method", label: "Method", type: "choice", value: "LPU", options: [
        ["LPU", "LPU: another group answers at each step"],
        ["LPA", "LPA: groups answer; those saved are used when it moves"],
        ["LPD", "LPD: groups answer; half of those left when it moves"],
        ["LSP", "LSP: all answer, once in a window"],
        ["LBU", "LBU: all answer at each step, with epsilon / window"],
        ["LBA", "LBA: all answer; saved epsilon is used when it moves"],
        ["LBD", "LBD: all answer; half of the epsilon left when it moves"]],
        hint: "How epsilon or people are divided over a window (Ren et al. 2022). If you do not know your stream, take LPU." },
    ],
    more: [oracle],
    problems(values) {
      const takes = values.steps * values.every;
      const questions = /^L[BP][AD]$/.test(values.method) ? 2 : 1;
      const found = {};
      if (takes > values.lasts) found.lasts = `${count(values.steps)} steps take ${duration(takes)}: let it end later, or take fewer steps.`;
      if (values.patience * questions > values.every) {
        found.patience = `A step is ${duration(values.every)} long and has up to ${questions === 1 ? "one question" : "two questions"}: at most ${duration(values.every / questions)}.`;
      }
      return found;
    },
    plan: (values) => ({
      categories: values.categories, method: values.method, window: values.window, every: values.every,
      steps: values.steps, oracle: values.oracle,
    }),
  },

  upload: {
    summary: "Each device adds noise to its own series and sends that. You get a table of protected series.",
    fields: [
      { name: "readings", label: "Readings of a series", type: "integer", unit: "readings", value: 24, min: 1, max: 16_384,
        hint: "Every device sends exactly so many; missing ones stay missing." },
      { name: "mechanism", label: "Mechanism", type: "choice", value: "laplace",
        options: [["laplace", "Laplace noise on bounded readings"], ["other", "Another one, as JSON"]],
        hint: "What a device does to its series before it sends it." },
    ],
    laplace: [
      epsilonField(1, "what a device sends"),
      { name: "low", label: "Lowest reading", type: "number", unit: "unit of the readings", value: 0,
        hint: "Lower readings are sent as this one. Choose it by what you know, never from data." },
      { name: "high", label: "Highest reading", type: "number", unit: "unit of the readings", value: 5,
        hint: "Higher readings are sent as this one. A narrower range means less noise." },
      { name: "unit", label: "What epsilon is for", type: "choice", value: "series", options: [
        ["series", "The whole series"], ["event", "Any single reading"]],
        hint: "The whole series is the stronger guarantee and needs more noise: as many times as there are readings." },
    ],
    other: [
      { name: "pasted", label: "Mechanism as JSON", type: "json",
        value: '{"is": "Laplace", "epsilon": 1.0, "bounds": [[0, 5]],\n "unit": {"is": "Window", "length": 24}}',
        hint: "As tempriv.spec.encode(mechanism) gives it in Python, for one column of numbers." },
      { ...epsilonField(1, "what a device sends"), name: "announced", label: "Epsilon, if the mechanism has none of its own" },
    ],
    more: [],
    problems(values) {
      if (values.mechanism === "laplace" && values.low >= values.high) return { high: "Must be above the lowest reading." };
      return {};
    },
    epsilon: (values) => (values.mechanism === "laplace" ? values.epsilon : values.pasted.epsilon ?? values.announced),
    plan: (values) => ({
      readings: values.readings,
      mechanism: values.mechanism === "other" ? values.pasted : {
        is: "Laplace", epsilon: values.epsilon, bounds: [[values.low, values.high]],
        unit: values.unit === "event" ? { is: "Event" } : { is: "WholeSeries", length: values.readings },
        per_column: false, grid: null,
      },
    }),
  },
};
