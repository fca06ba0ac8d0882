"""Arguments for every op: float32 (our kernel), float64 and half types (the plain expression), dense and strided, optional ones there
and absent, inputs with and without a gradient. A group yields (op, case); a case is a function, called after seeding."""

import mixed
import products
import rows
import tables

CASES: dict[str, list] = {}
for module in (rows, products, tables, mixed):
    for name, group in vars(module).items():
        if not name.endswith("_cases"):
            continue
        for op, case in group():
            CASES.setdefault(op, []).append(case)
