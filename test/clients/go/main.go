// A program that uses the client that oapi-codegen generates from the document. Each line on standard output is a step that
// succeeded; the first failure ends the program.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"tocsin-generated-client/tocsin"
)

const (
	deadlineMax = 60 * time.Second
	language    = "go"
)

func report(step, detail string) {
	fmt.Printf("%s: %s\n", step, detail)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func require(holds bool, what string, got any) {
	if !holds {
		log.Fatalf("%s: %+v", what, got)
	}
}

func pointer[Value any](value Value) *Value {
	return &value
}

func condition(test tocsin.FieldTest) tocsin.Condition {
	var made tocsin.Condition
	check(made.FromFieldTest(test))
	return made
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), deadlineMax)
	defer cancel()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("TOCSIN_KEY"))
		return nil
	}
	client, err := tocsin.NewClientWithResponses(os.Getenv("TOCSIN_ADDRESS"), tocsin.WithRequestEditorFn(authorize))
	check(err)

	var eventType tocsin.Scalar
	check(eventType.FromScalar0("client_" + language))
	var many tocsin.NumberOrTime
	check(many.FromNumberOrTime0(1000))
	var groupBy tocsin.FieldPathOrPaths
	check(groupBy.FromFieldPathOrPaths0("raw.user"))
	isOurs := tocsin.FieldTest{Field: "type", Equals: &eventType}
	var either tocsin.Condition
	check(either.FromAnyCondition(tocsin.AnyCondition{
		Any: []tocsin.Condition{condition(isOurs), condition(tocsin.FieldTest{Field: "raw.attempts", Gt: &many})},
	}))
	rule := tocsin.NewRule{
		Name:        "clients." + language,
		Description: "Two events of a generated client",
		Severity:    tocsin.SeverityLevelHigh,
		Conditions:  []tocsin.Condition{either},
		Threshold:   &tocsin.NewThreshold{Count: pointer(2), GroupBy: &groupBy},
		Window:      pointer("5m"),
		Actions:     []tocsin.RuleAction{{Alert: tocsin.RuleActionAlert{Channels: []tocsin.Channel{}}}},
	}
	made, err := client.CreateRuleWithResponse(ctx, rule)
	check(err)
	require(made.JSON201 != nil, "create a rule", string(made.Body))
	path, err := made.JSON201.Data.Threshold.GroupBy.AsFieldPathOrPaths0()
	check(err)
	require(path == "raw.user", "group_by", path)
	report("create a rule", made.JSON201.Data.Id)

	rules := 0
	for page, pages := int64(1), int64(1); page <= pages; page++ {
		list, err := client.ListRulesWithResponse(ctx, &tocsin.ListRulesParams{Page: &page, PerPage: pointer(100)})
		check(err)
		require(list.JSON200 != nil, "list rules", string(list.Body))
		pages = list.JSON200.Pagination.TotalPages
		rules += len(list.JSON200.Data)
	}
	report("list rules", fmt.Sprintf("%d, built-in ones included", rules))

	stream, err := client.ClientInterface.Stream(ctx, &tocsin.StreamParams{Kinds: pointer("alerts"), RuleName: &rule.Name})
	check(err)
	defer stream.Body.Close()
	require(stream.StatusCode == http.StatusOK, "open the stream", stream.Status)

	refused, err := client.SubmitEventWithResponse(ctx, nil, tocsin.Submission{
		Type: "", Source: tocsin.SubmissionSourceCustom, Data: map[string]any{},
	})
	check(err)
	require(refused.JSON400 != nil, "refuse a bad event", string(refused.Body))
	fault := refused.JSON400.Error.Details[0]
	require(fault.Field == "type", "name the field", fault)
	report("read an error", fault.Field+": "+fault.Message)

	var ids []string
	for _, attempts := range []int{1, 2} {
		event, err := client.SubmitEventWithResponse(ctx, nil, tocsin.Submission{
			Type: "client_" + language, Source: tocsin.SubmissionSourceCustom, Data: map[string]any{"user": "ann", "attempts": attempts},
		})
		check(err)
		require(event.JSON201 != nil, "submit an event", string(event.Body))
		ids = append(ids, event.JSON201.Data.Id)
	}
	report("submit events", strings.Join(ids, ", "))

	events, err := client.ListEventsWithResponse(ctx, &tocsin.ListEventsParams{Type: pointer("client_" + language)})
	check(err)
	require(events.JSON200 != nil && len(events.JSON200.Data) == 2, "list events", string(events.Body))
	report("list events", fmt.Sprintf("%d, the newest of %s", events.JSON200.Pagination.Total,
		events.JSON200.Data[0].Timestamp.Format(time.RFC3339Nano)))

	var filter tocsin.Filter
	check(filter.FromFieldTest(isOurs))
	found, err := client.SearchEventsWithResponse(ctx, tocsin.Search{
		Query: tocsin.SearchQuery{Bool: &tocsin.BoolQuery{Must: &[]tocsin.Filter{filter}}},
		Aggs: &map[string]tocsin.Aggregation{
			"attempts": {Stats: &tocsin.FieldAggregation{Field: "raw.attempts"}},
		},
	})
	check(err)
	require(found.JSON200 != nil, "search", string(found.Body))
	stats, err := found.JSON200.Data.Aggregations["attempts"].AsStats()
	check(err)
	most, err := stats.Max.AsNumberOrTime0()
	check(err)
	require(most == 2, "aggregate", most)
	report("search", fmt.Sprintf("at most %g attempts", most))

	var told tocsin.Alert
	kind := ""
	for lines := bufio.NewScanner(stream.Body); told.Id == "" && lines.Scan(); {
		if name, isKind := strings.CutPrefix(lines.Text(), "event: "); isKind {
			kind = name
		}
		if data, isData := strings.CutPrefix(lines.Text(), "data: "); isData && kind == "alert" {
			check(json.Unmarshal([]byte(data), &told))
		}
	}
	require(told.RuleName == rule.Name, "read the stream", told)
	report("read the stream", "an alert of "+told.RuleName)

	alerts, err := client.ListAlertsWithResponse(ctx, &tocsin.ListAlertsParams{
		RuleName: &rule.Name, Status: pointer(string(tocsin.AlertStatusOpen)),
	})
	check(err)
	require(alerts.JSON200 != nil && len(alerts.JSON200.Data) == 1, "list alerts", string(alerts.Body))
	alert := alerts.JSON200.Data[0]
	require(alert.Severity == tocsin.SeverityLevelHigh, "the alert's severity", alert)
	report("list alerts", fmt.Sprintf("%s, %s", alert.Id, alert.Status))

	now := time.Now()
	simulated, err := client.SimulateRuleWithResponse(ctx, tocsin.SimulationRequest{
		Rule: tocsin.SimulatedRule{
			Name:        rule.Name,
			Description: rule.Description,
			Severity:    rule.Severity,
			Conditions:  rule.Conditions,
			Threshold:   rule.Threshold,
			Window:      rule.Window,
			Actions:     rule.Actions,
		},
		TimeRange: tocsin.BoundedTimeRange{From: now.Add(-time.Hour), To: now},
	})
	check(err)
	require(simulated.JSON200 != nil, "simulate the rule", string(simulated.Body))
	simulation := simulated.JSON200.Data
	require(simulation.Matches == 2 && simulation.Alerts == 1, "the simulation", simulation)
	report("simulate the rule", fmt.Sprintf("%d matches, %d alert", simulation.Matches, simulation.Alerts))

	resolved, err := client.ResolveAlertWithResponse(ctx, alert.Id, tocsin.Resolving{
		Resolution: tocsin.Benign, ActionsTaken: &[]string{"nothing"},
	})
	check(err)
	require(resolved.JSON200 != nil, "resolve the alert", string(resolved.Body))
	detail := resolved.JSON200.Data
	require(detail.Status == tocsin.AlertStatusResolved && len(detail.RelatedEvents) == 2, "resolved", detail)
	report("resolve the alert", fmt.Sprintf("%s, %s", detail.Status, *detail.Resolution))
}
