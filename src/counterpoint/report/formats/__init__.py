"""What a report is written as: a page, Markdown, CSV or JSON."""
