"""The entrance: SQL text and a catalog to a typed plan.

`parse` makes the syntax tree; `query` and what it calls bind it. Here the pieces are put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bireme.errors import QueryError, Unsupported
from bireme.frontend.catalog import Catalog
from bireme.frontend.sql import calls, lambdas, literals, nested, operators, structs, subquery, windows
from bireme.frontend.sql.context import Block
from bireme.frontend.sql.joins import joined
from bireme.frontend.sql.lexemes import TOO_DEEP
from bireme.frontend.sql.parse import DIALECT, Parsed, parse
from bireme.frontend.sql.query import bind_query
from bireme.frontend.sql.statement import Handler, Statement
from bireme.frontend.sql.syntax import Node
from bireme.plan.relation import Rel

HANDLERS: Final[Mapping[type[Node], Handler]] = {
    **literals.HANDLERS,
    **operators.HANDLERS,
    **calls.HANDLERS,
    **lambdas.HANDLERS,
    **nested.HANDLERS,
    **structs.HANDLERS,
    **windows.HANDLERS,
    **subquery.HANDLERS,
}


def bind_sql(
    text: str,
    catalog: Catalog,
    *,
    dialect: str = DIALECT,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
) -> Rel:
    """The plan of the one query in `text`; the names of its schema are those of the result's columns.

    `parameters` are the values of `?` and `$1` (a sequence) or `$name` (a mapping). Raises QueryError, with the place
    in the text, for anything that is not a query over the tables of `catalog`.
    """
    return bind_tree(parse(text, dialect), catalog, parameters=parameters)


def bind_tree(
    parsed: Parsed, catalog: Catalog, *, parameters: Sequence[object] | Mapping[str, object] | None = None
) -> Rel:
    """The plan of a query that is parsed already."""
    text = parsed.text
    try:
        statement = Statement(text, parsed.tokens, catalog, HANDLERS, bind_query, joined, parameters)
        relation = bind_query(parsed.tree, Block(statement, None, {})).relation
        statement.check_parameters()
        assert relation.schema is not None  # derived here, where too deep a nesting is still the query's fault
        return relation
    except QueryError as error:
        if error.text is None:
            error.text = text
        raise
    except RecursionError:
        raise Unsupported(TOO_DEEP, text=text) from None
