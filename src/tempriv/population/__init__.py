"""Many people, each protected on their own device, and what can be said of all of them."""
