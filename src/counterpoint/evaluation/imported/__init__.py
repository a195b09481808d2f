"""Predictions that were made elsewhere: named arrays, what each is for, their checks, and the folder they become."""
