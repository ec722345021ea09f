"""What server and devices agree on: campaigns, assignment, consent, kinds."""
