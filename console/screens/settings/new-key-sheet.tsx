import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../components/ui/button.tsx";
import { Check, SelectField, TextField } from "../../components/ui/fields.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";
import { ApiError } from "../../data/client.ts";
import { createKey, type NewKey } from "../../data/keys.ts";
import type { Scope } from "../../data/session.ts";

const SCOPES: Readonly<Record<Scope, string>> = {
  "events:read": "read events and flows",
  "events:write": "submit events",
  "alerts:read": "read alerts",
  "alerts:write": "acknowledge, comment and resolve alerts",
  "rules:read": "read rules and watch lists",
  "rules:write": "change rules and watch lists",
  "keys:manage": "create and revoke keys",
  "collect:network": "send the network's webhooks",
  "collect:protect": "send the cameras' webhooks",
  "collect:access": "send the doors' webhooks",
  "collect:talk": "send the telephones' call records",
  "collect:eve": "send Suricata's events",
  "collect:syslog": "send syslog lines",
};

export const SCOPES_IN_ALL = Object.keys(SCOPES).length;

const LIFETIMES = [
  { value: "", label: "Never" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];
const DAY_MS = 86_400_000;

interface NewKeySheetProps {
  readonly onClose: () => void;
  readonly onMade: (secret: string, name: string) => void;
}

export function NewKeySheet({ onClose, onMade }: NewKeySheetProps) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set(["events:read", "alerts:read", "rules:read"]));
  const [plan, setPlan] = useState<NonNullable<NewKey["plan"]>>("pro");
  const [days, setDays] = useState("");
  const make = useMutation({
    mutationFn: () =>
      createKey({
        name: name.trim(),
        scopes: [...scopes],
        plan,
        expires_at: days === "" ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
      }),
    onSuccess: (secret) => onMade(secret, name.trim()),
  });
  const faults = make.error instanceof ApiError ? make.error.faults : [];
  const faultOf = (field: string) => faults.find((fault) => fault.field.startsWith(field))?.message;
  const general = make.error !== null && faults.length === 0 ? make.error.message : undefined;
  return (
    <Sheet
      open
      onClose={onClose}
      title="New key"
      footer={
        <>
          {general !== undefined && (
            <p role="alert" className="text-xs text-critical">
              {general}
            </p>
          )}
          <Button className="ml-auto" onClick={onClose}>
            Cancel
          </Button>
          <Button look="primary" type="submit" form="new-key" disabled={make.isPending || scopes.size === 0}>
            Create the key
          </Button>
        </>
      }
    >
      <form
        id="new-key"
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate();
        }}
      >
        <TextField
          label="Name"
          hint="Who or what uses it. It stands beside everything that is done with the key."
          required
          value={name}
          onChange={({ target }) => setName(target.value)}
          fault={faultOf("name")}
        />
        <fieldset className="space-y-1">
          <legend className="mb-1 text-xs font-medium text-ink2">It may</legend>
          {(Object.keys(SCOPES) as Scope[]).map((scope) => (
            <div key={scope}>
              <Check
                label={
                  <span>
                    {SCOPES[scope]} <code className="mono text-2xs text-ink3">{scope}</code>
                  </span>
                }
                checked={scopes.has(scope)}
                onChange={(isChosen) => {
                  const next = new Set(scopes);
                  if (isChosen) next.add(scope);
                  else next.delete(scope);
                  setScopes(next);
                }}
              />
            </div>
          ))}
          {faultOf("scopes") !== undefined && (
            <p role="alert" className="text-xs text-critical">
              {faultOf("scopes")}
            </p>
          )}
        </fieldset>
        <div className="grid grid-cols-2 gap-4">
          <SelectField
            label="Limits"
            value={plan}
            onChange={(value) => setPlan(value as typeof plan)}
            options={[
              { value: "starter", label: "Starter" },
              { value: "pro", label: "Pro" },
              { value: "enterprise", label: "Enterprise" },
            ]}
            fault={faultOf("plan")}
          />
          <SelectField
            label="Expires"
            value={days}
            onChange={setDays}
            options={LIFETIMES}
            fault={faultOf("expires_at")}
          />
        </div>
      </form>
    </Sheet>
  );
}
