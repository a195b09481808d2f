"""The sections of the page: a module for what each says, and beside it the template that lays it out."""
