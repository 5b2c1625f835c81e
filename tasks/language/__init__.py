"""Language modelling: text from files, the hub or the standard library, to rows of tokens, to a decoder's loss."""
