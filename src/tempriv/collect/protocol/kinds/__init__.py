"""The kinds of campaign: shapes, frequency, stream, upload."""
