"""What tests share: helpers, fixtures and the safety net."""
