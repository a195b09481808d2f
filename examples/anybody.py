"""Two classifiers of scikit-learn, compared on one page: `python examples/anybody.py` writes report.html."""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from counterpoint import compare_run, evaluate_logits, write_report

x, x_rest, y, y_rest = train_test_split(*load_digits(return_X_y=True), test_size=0.7, random_state=0)
models = {"forest": RandomForestClassifier(random_state=0), "logistic": LogisticRegression(max_iter=3000)}
for name, model in models.items():
    probs = model.fit(x, y).predict_proba(x_rest)
    test = {"probs": probs[::2], "labels": y_rest[::2]}
    validation = {"validation_probs": probs[1::2], "validation_labels": y_rest[1::2]}
    evaluate_logits({"dataset": "digits", **test, **validation}, f"runs/{name}")
compare_run("runs/forest", ["runs/logistic"])
write_report(["runs/forest", "runs/logistic"], "report.html")
