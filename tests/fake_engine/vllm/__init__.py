"""Part of a stand-in for the engine; see fake_engine/README.md."""
