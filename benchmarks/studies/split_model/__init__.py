"""Study of split facts with a language model: does it learn to carry a value from app to app?"""
