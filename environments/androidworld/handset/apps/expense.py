"""Pro Expense: the phone's expenses. ``accounting.db`` stores cents and numbered categories."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.apps.record_list import FormField, RecordListApp
from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.phone.state import Row

CATEGORIES = (
    "Others", "Income", "Food", "Housing", "Social", "Entertainment", "Transportation", "Clothes",
    "Health Care", "Education", "Donation",
)  # fmt: skip
ACCOUNTING = db.single_table(
    "/data/data/com.arduia.expense/databases/accounting.db",
    "expense", "expense_id", "expense",
    (
        db.text("name", "item"), db.cents("amount", "amount"),
        db.numbered("category", "category", CATEGORIES), db.text("note"),
        db.integer("created_date", "created"), db.integer("modified_date", "modified"),
    ),
)  # fmt: skip


_MOST = 10**12
"""Bound of an amount; the database holds its cents as an integer."""


def _amount(typed: str) -> bool:
    try:
        return 0 < Decimal(typed) < _MOST
    except InvalidOperation:
        return False


def _row(record: Row) -> tuple[str, str]:
    when = datetime.fromtimestamp(int(record.get("created", "0")) / 1000, UTC)
    return record["item"], f"${record['amount']} · {record['category']} · {when:%b} {when.day}"


def _now(handset: Handset) -> dict[str, str]:
    return {"modified": str(handset.now * 1000)}


LIST = RecordListApp(
    app="pro expense",
    title="Pro Expense",
    table="expense",
    fields=(
        FormField("item", "Name"),
        FormField("amount", "Amount", (), _amount),
        FormField("category", "Category", CATEGORIES),
        FormField("note", "Note"),
    ),
    add="Add expense",
    row=_row,
    sort_key=lambda key, record: -int(record.get("created", "0")),
    on_insert=lambda handset: {"created": str(handset.now * 1000), **_now(handset)},
    on_update=_now,
)
EXPENSE = LIST.spec("com.arduia.expense", "com.arduia.expense.ui.MainActivity", ACCOUNTING)
