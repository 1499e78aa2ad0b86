import type { Page } from "playwright-core";
import type { TestServer } from "../api-server.ts";
import { settled } from "./browser.ts";
import type { Places, State } from "./states.ts";

// What the states of the console show, and the way there.

/** Adds to a demo what some states need: an open alert, a rule with an exception, a watch list, a webhook that was called. */
export async function preparePlaces(server: TestServer): Promise<Places> {
  const call = async (method: string, path: string, body?: unknown): Promise<any> => {
    const answer = await server.call(method, path, body === undefined ? {} : { body });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body.data;
  };
  const [alert] = await call("GET", "/v1/alerts?rule_name=site.intrusion_across_domains&limit=1");
  await call("POST", `/v1/alerts/${alert.id}/reopen`, {});
  const [event] = await call("GET", "/v1/events?type=access_granted&limit=1");
  const { id: ownRule } = await call("POST", "/v1/rules", {
    name: "site.own",
    description: "Somebody came in\n\nLook at the camera.",
    severity: "low",
    conditions: [{ field: "type", equals: "access_granted" }],
    actions: [{ alert: { channels: [] } }],
  });
  await call("POST", `/v1/rules/${ownRule}/exceptions`, {
    conditions: [{ field: "raw.user", equals: "ada" }],
    reason: "our own",
  });
  await call("POST", "/v1/lists", { name: "blocked", description: "Neighbours" });
  await call("POST", "/v1/lists/blocked/entries", { entries: [{ value: "192.0.2.17", note: "loud" }] });
  const phoneCall = { id: "c1", from: "101", to: "102", direction: "out", started_at: new Date().toISOString() };
  await call("POST", "/v1/collect/talk", phoneCall);
  return { alert: alert.id, event: event.id, rule: alert.rule_name, ownRule, list: "blocked" };
}

/** Goes to the screen of a state as a link in the page would: nothing is loaded again. */
export async function goTo(page: Page, { path }: State, places: Places): Promise<void> {
  await page.evaluate((to) => history.pushState({}, "", to), path(places));
  await page
    .getByRole("main")
    .or(page.getByText("There is no such page"))
    .or(page.getByRole("dialog"))
    .first()
    .waitFor();
  await settled(page);
}
