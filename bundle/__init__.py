"""specbundle: evidence for speculative decoding with vLLM, from frozen inputs to a verdict."""

__version__ = "0.1.0"
