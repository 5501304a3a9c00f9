"""Write the gold pages anew: ``python -m tests.gold.update``; then read the difference."""

from tests.gold.pages import gold_file, gold_text, views

if __name__ == "__main__":
    for name, made in views().items():
        gold_file(name).write_text(gold_text(made), encoding="utf-8")
        print(f"wrote {gold_file(name).name}")
