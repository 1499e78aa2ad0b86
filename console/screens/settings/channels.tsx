import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ago } from "../../components/time/format.ts";
import { useNow } from "../../components/time/use-range.ts";
import { Button } from "../../components/ui/button.tsx";
import { Panel } from "../../components/ui/heading.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import { channelsQuery, testChannel, type ChannelStatus } from "../../data/channels.ts";
import { useMay } from "../../data/session.ts";
import { CHANNELS } from "../../text/channels.ts";
import { count } from "../../text/numbers.ts";

const STATES: Record<ChannelStatus["state"], { word: string; look: string }> = {
  not_configured: { word: "Not set up", look: "text-ink3" },
  unused: { word: "Set up; nothing sent yet", look: "text-ink2" },
  working: { word: "Working", look: "text-good" },
  failing: { word: "Failing", look: "text-high" },
};

export function Channels() {
  const mayRead = useMay("alerts:read");
  if (!mayRead) {
    return (
      <Empty title="Your key may not see the channels">
        It needs the scope <code className="mono">alerts:read</code>.
      </Empty>
    );
  }
  return <ChannelList />;
}

function ChannelList() {
  const channels = useQuery(channelsQuery);
  if (channels.error !== null && channels.data === undefined) {
    return <Failure error={channels.error} onRetry={() => void channels.refetch()} />;
  }
  return (
    <>
      <p className="text-sm text-ink2">Where alerts are told. Which rule tells which channel stands in the rule.</p>
      {channels.data === undefined ? (
        <Skeleton className="h-64" />
      ) : (
        channels.data.map((channel) => <ChannelPanel key={channel.name} channel={channel} />)
      )}
    </>
  );
}

function ChannelPanel({ channel }: { channel: ChannelStatus }) {
  const client = useQueryClient();
  const nowMs = useNow();
  const mayTest = useMay("rules:write");
  const { name, icon } = CHANNELS[channel.name];
  const { word, look } = STATES[channel.state];
  const test = useMutation({
    mutationFn: () => testChannel(channel.name),
    onSuccess: ({ outcome, error }) => {
      if (outcome === "sent") showToast(`The test message to ${name} was sent.`);
      else showToast(`${name}: ${error ?? outcome}`, { isProblem: true });
      void client.invalidateQueries(channelsQuery);
    },
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  const waiting = channel.queue.waiting + channel.queue.sending;
  return (
    <Panel>
      <div className="flex items-center gap-3">
        <Icon name={icon} size={18} className="text-ink3" />
        <h2 className="text-sm font-semibold">{name}</h2>
        <span className={`text-xs font-medium ${look}`}>{word}</span>
        {channel.configured && (
          <Button
            icon="send"
            className="ml-auto"
            disabled={!mayTest || test.isPending}
            title={mayTest ? undefined : "Your key lacks the scope rules:write."}
            onClick={() => test.mutate()}
          >
            {test.isPending ? "Sending…" : "Send a test"}
          </Button>
        )}
      </div>
      {channel.configured ? (
        <dl className="mt-3 grid grid-cols-[auto_1fr] gap-x-6 gap-y-1 text-sm">
          <dt className="text-ink3">Last delivered</dt>
          <dd>{channel.last_delivery_at === null ? "never" : ago(channel.last_delivery_at, nowMs)}</dd>
          <dt className="text-ink3">Waiting</dt>
          <dd>
            {count(waiting, "message")}
            {channel.queue.dead > 0 && `; ${count(channel.queue.dead, "message")} given up`}
          </dd>
          {channel.last_error !== null && (
            <>
              <dt className="text-ink3">Last error</dt>
              <dd>
                {channel.last_error.message} <span className="text-ink3">({ago(channel.last_error.at, nowMs)})</span>
              </dd>
            </>
          )}
          {channel.last_test !== null && (
            <>
              <dt className="text-ink3">Last test</dt>
              <dd>
                {channel.last_test.error ?? channel.last_test.outcome}{" "}
                <span className="text-ink3">({ago(channel.last_test.at, nowMs)})</span>
              </dd>
            </>
          )}
        </dl>
      ) : (
        <p className="mt-2 text-sm text-ink2">
          Set{" "}
          {channel.required_settings.map((setting, index) => (
            <span key={setting}>
              {index > 0 && ", "}
              <code className="mono text-xs">{setting}</code>
            </span>
          ))}{" "}
          in the configuration of the service, then start it again.
        </p>
      )}
    </Panel>
  );
}
