import { EmptyScreen } from "../../components/ui/states.tsx";
import { useMay } from "../../data/session.ts";
import { Events } from "./events.tsx";

/** What happened, event by event. */
export function EventsScreen() {
  if (!useMay("events:read")) {
    return (
      <EmptyScreen heading="Events" title="Your key may not see this">
        <p>Events need the scope events:read.</p>
      </EmptyScreen>
    );
  }
  return <Events />;
}
