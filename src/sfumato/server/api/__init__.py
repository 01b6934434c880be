"""The API: what the pages of analysts do, for programs that bring a token; its description is OpenAPI."""
