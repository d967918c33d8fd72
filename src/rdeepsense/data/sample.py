"""A sample of the rows of a fit, split as the whole is: to choose on, where rows are many."""

from __future__ import annotations

from rdeepsense.data.rows import FitRows

FEWEST_HELD = 500  # validation rows of a sample, where there are so many


def sampled(rows: FitRows, most: int, trained: int) -> FitRows:
    """Draw at most so many rows by the seed, those to train and to validate on in proportion.

    `trained` is how many train in the whole, of which `rows` may hold only some. Rows train or
    validate as they do in the whole, so that the whole's judges are strange to all that was chosen
    on the sample's training rows. Weights are kept, groups are whole (`Part.drawn`), and X is not
    copied.
    """
    held = len(rows.validation)
    share = min(1.0, most / (trained + held))
    judges = max(round(share * held), min(held, FEWEST_HELD, most // 2))
    train = rows.train.drawn(most - judges, rows.seed + 2, rows.labels)
    labels = None if rows.labels is None else rows.y_val
    return FitRows(
        rows.X,
        rows.y,
        train,
        train,
        rows.X_val,
        rows.y_val,
        rows.validation.drawn(judges, rows.seed + 3, labels),
        rows.labels,
        rows.split_off,
        rows.seed,
        aside=None,
        encoding=rows.encoding,
        groups=rows.groups,
        recipe=rows.recipe,
        in_time=rows.in_time,
    )
