"""The site: lessons, labs, documents and reference as pages of one place, with search. `make docs` builds it."""
