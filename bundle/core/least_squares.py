"""The linear algebra and the moderated variance behind :mod:`bundle.core.layout`.

Every function works on any number of trials at once (``y`` of shape ``(trials, starts)``), so the
simulation in :mod:`bundle.core.simulate` exercises the very code that judges a bundle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from scipy import special

Array = npt.NDArray[np.float64]
_TOLERANCE = 1e-9


class Layout(Struct, frozen=True, kw_only=True):
    """The linear algebra of one set of starts, before any value is known.

    ``solve`` is X+ (columns x starts), ``residual`` is M = I - X X+ (starts x starts).
    """

    rows: dict[str, npt.NDArray[np.bool_]]
    solve: Array
    residual: Array
    columns: dict[str, int]
    estimable: dict[str, bool]
    df: int
    moderated: bool


class Estimates(Struct, frozen=True, kw_only=True):
    """Effect, standard error and effective freedom of one arm, each of shape (trials,)."""

    effect: Array
    se: Array
    nu: Array


def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t; ``df`` need not be whole."""
    return float(special.stdtrit(df, probability))


def build(slots: Sequence[tuple[int, int, str]], *, methods: int, reference: str) -> Layout:
    """Make the design of starts given as (block, position, arm).

    ``methods`` is the number of methods in the complete design: it places a start inside its
    block even when others failed.
    """
    blocks = sorted({block for block, _, _ in slots})
    arms = sorted({arm for _, _, arm in slots} - {reference})
    own = np.array([[float(block == b) for b in blocks] for block, _, _ in slots])
    centred = np.array([[position / (methods + 1) - 0.5] for _, position, _ in slots])
    slope = centred if methods == 1 else own * centred
    treated = np.array([[float(arm == a) for a in arms] for _, _, arm in slots])
    x = np.hstack([own, slope, treated.reshape(len(slots), len(arms))])
    solve = np.linalg.pinv(x, rcond=_TOLERANCE)
    columns = {arm: x.shape[1] - len(arms) + i for i, arm in enumerate(arms)}
    recovered = solve @ x
    return Layout(
        rows={arm: treated[:, i] > 0 for i, arm in enumerate(arms)},
        solve=solve,
        residual=np.eye(len(slots)) - x @ solve,
        columns=columns,
        # An effect is estimable when the rows of X can express it: c'X+X = c'.
        estimable={
            arm: bool(np.allclose(recovered[j], np.eye(x.shape[1])[j], atol=1e-7))
            for arm, j in columns.items()
        },
        df=len(slots) - int(np.linalg.matrix_rank(x, tol=_TOLERANCE)),
        moderated=methods > 1,
    )


def estimate(layout: Layout, arm: str, y: Array) -> Estimates:
    """Estimate one arm for every trial of ``y`` (trials x starts).

    Needs ``layout.df`` > 0 and starts that differ at all.

    The arm's own residual variance is moderated by the other starts' with the weight of one
    degree of freedom, as in Smyth's moderated t; the freedom of the sum is Satterthwaite's.
    """
    weight = layout.solve[layout.columns[arm]]
    squares = (y @ layout.residual) ** 2
    rss = squares.sum(axis=1)
    own = layout.rows[arm]
    d = float(np.diag(layout.residual)[own].sum())
    rest = layout.df - d
    if not layout.moderated or rest < _TOLERANCE:
        se2 = rss / layout.df * float(weight @ weight)
        nu = np.full(len(y), float(layout.df))
    else:
        own_squares = squares[:, own].sum(axis=1)
        others = (rss - own_squares) / rest
        mine = (others + own_squares) / (1 + d)
        a = mine * float((weight[own] ** 2).sum())
        c = others * float((weight[~own] ** 2).sum())
        se2 = a + c
        nu = np.minimum(layout.df, se2**2 / (a**2 / (1 + d) + c**2 / rest))
    return Estimates(effect=y @ weight, se=np.sqrt(se2), nu=nu)
