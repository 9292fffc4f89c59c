"""Everything a person sees at the end of a comparison: plain data in, text out."""
