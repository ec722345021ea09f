"""The mechanisms, a package a family; ``registry`` finds them by name.

``base`` says what a mechanism is, ``domains`` what readings are, ``options`` what the command line
asks for; ``perturb`` and ``stream`` carry readings through one.
"""
