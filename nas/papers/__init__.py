"""Claims, figures and configurations of four papers, compared with this project. Not part of the engine."""
