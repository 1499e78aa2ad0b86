"""A program that uses the client that openapi-python-client generates from the document. Each line on standard output is
a step that succeeded; the first failure ends the program."""

import datetime
import json
import os

import httpx
from tocsin_client import AuthenticatedClient
from tocsin_client.api.alerts import list_alerts, resolve_alert
from tocsin_client.api.events import list_events, search_events, submit_event
from tocsin_client.api.rules import create_rule, list_rules, simulate_rule
from tocsin_client.models import (
    Aggregation,
    AnyCondition,
    BoolQuery,
    BoundedTimeRange,
    ErrorResponse,
    FieldAggregation,
    FieldTest,
    NewRule,
    NewThreshold,
    Resolution,
    Resolving,
    RuleAction,
    RuleActionAlert,
    Search,
    SearchAggs,
    SearchQuery,
    SeverityLevel,
    SimulatedRule,
    SimulationRequest,
    Stats,
    Submission,
    SubmissionData,
)

DEADLINE_SECONDS_MAX = 60
LANGUAGE = "python"

client = AuthenticatedClient(
    base_url=os.environ["TOCSIN_ADDRESS"],
    token=os.environ["TOCSIN_KEY"],
    timeout=httpx.Timeout(DEADLINE_SECONDS_MAX),
)


def report(step, detail):
    print(f"{step}: {detail}", flush=True)


def must(answer):
    """The body of the response; raises the error that the document describes."""
    if isinstance(answer, ErrorResponse):
        raise RuntimeError(f"{answer.error.code}: {answer.error.message}")
    assert answer is not None, "an answer that the document does not have"
    return answer


condition = FieldTest(field="type", equals=f"client_{LANGUAGE}")
rule = {
    "name": f"clients.{LANGUAGE}",
    "description": "Two events of a generated client",
    "severity": SeverityLevel.HIGH,
    "conditions": [AnyCondition(any_=[condition, FieldTest(field="raw.attempts", gt=1000)])],
    "threshold": NewThreshold(count=2, group_by="raw.user"),
    "window": "5m",
    "actions": [RuleAction(alert=RuleActionAlert(channels=[]))],
}

made = must(create_rule.sync(client=client, body=NewRule(**rule))).data
assert made.threshold.group_by == "raw.user", made
report("create a rule", made.id)

page, pages, rules = 1, 1, 0
while page <= pages:
    answer = must(list_rules.sync(client=client, page=page, per_page=100))
    page, pages, rules = page + 1, answer.pagination.total_pages, rules + len(answer.data)
report("list rules", f"{rules}, built-in ones included")

query = {"kinds": "alerts", "rule_name": rule["name"]}
with client.get_httpx_client().stream("GET", "/v1/stream", params=query) as stream:
    assert stream.status_code == 200, stream.status_code

    bad = Submission(type_="", source="custom", data=SubmissionData())
    refused = submit_event.sync_detailed(client=client, body=bad)
    assert refused.status_code == 400 and isinstance(refused.parsed, ErrorResponse), refused
    fault = refused.parsed.error.details[0]
    assert fault.field == "type", fault
    report("read an error", f"{fault.field}: {fault.message}")

    ids = []
    for attempts in (1, 2):
        data = SubmissionData.from_dict({"user": "ann", "attempts": attempts})
        event = Submission(type_=f"client_{LANGUAGE}", source="custom", data=data)
        ids.append(must(submit_event.sync(client=client, body=event)).data.id)
    report("submit events", ", ".join(ids))

    events = must(list_events.sync(client=client, type_=f"client_{LANGUAGE}"))
    assert {event.id for event in events.data} == set(ids), events
    report("list events", f"{events.pagination.total}, the newest of {events.data[0].timestamp.isoformat()}")

    aggs = SearchAggs()
    aggs["attempts"] = Aggregation(stats=FieldAggregation(field="raw.attempts"))
    search = Search(query=SearchQuery(bool_=BoolQuery(must=[condition])), aggs=aggs)
    attempts = must(search_events.sync(client=client, body=search)).data.aggregations["attempts"]
    assert isinstance(attempts, Stats) and attempts.max_ == 2, attempts
    report("search", f"at most {attempts.max_:g} attempts")

    kind = told = None
    for line in stream.iter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        if line.startswith("data: ") and kind == "alert":
            told = json.loads(line.removeprefix("data: "))
            break
    assert told and told["rule_name"] == rule["name"], told
    report("read the stream", f"an alert of {told['rule_name']}")

alerts = must(list_alerts.sync(client=client, rule_name=rule["name"], status="open")).data
assert len(alerts) == 1 and alerts[0].severity is SeverityLevel.HIGH, alerts
report("list alerts", f"{alerts[0].id}, {alerts[0].status.value}")

now = datetime.datetime.now(datetime.timezone.utc)
time_range = BoundedTimeRange(from_=now - datetime.timedelta(hours=1), to=now)
request = SimulationRequest(rule=SimulatedRule(**rule), time_range=time_range)
simulation = must(simulate_rule.sync(client=client, body=request)).data
assert (simulation.matches, simulation.alerts) == (2, 1), simulation
report("simulate the rule", f"{simulation.matches} matches, {simulation.alerts} alert")

resolving = Resolving(resolution=Resolution.BENIGN, actions_taken=["nothing"])
resolved = must(resolve_alert.sync(alerts[0].id, client=client, body=resolving)).data
assert resolved.resolution is Resolution.BENIGN and len(resolved.related_events) == 2, resolved
report("resolve the alert", f"{resolved.status.value}, {resolved.resolution.value}")
