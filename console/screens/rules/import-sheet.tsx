import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Button } from "../../components/ui/button.tsx";
import { Check, TextArea } from "../../components/ui/fields.tsx";
import { Segments } from "../../components/ui/segments.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import { ApiError } from "../../data/client.ts";
import { importRules, refreshRules, type RuleImport, type RuleImportResult } from "../../data/rules.ts";
import { count } from "../../text/numbers.ts";

const EXAMPLE = `title: Odd tool run from a temporary folder
level: high
logsource: { category: process_creation, product: windows }
detection:
  selection:
    Image|endswith: '\\odd.exe'
  condition: selection
`;

/** Rules from Sigma, or from files of one's own: first shows what would be created, then creates it. */
export default function ImportSheet({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const files = useRef<HTMLInputElement>(null);
  const [format, setFormat] = useState<RuleImport["format"]>("sigma");
  const [content, setContent] = useState("");
  const [isEnabled, setEnabled] = useState(true);
  const body = { format, content, enabled: isEnabled };
  const check = useMutation({ mutationFn: () => importRules({ ...body, dry_run: true }) });
  const create = useMutation({
    mutationFn: () => importRules({ ...body, dry_run: false }),
    onSuccess: (result) => {
      showToast(
        `Created ${count(result.imported.length, "rule")}.${result.refused.length === 0 ? "" : ` ${count(result.refused.length, "rule")} could not be translated.`}`,
      );
      void refreshRules(client);
      onClose();
    },
  });
  const change = (text: string) => {
    setContent(text);
    check.reset();
    create.reset();
  };
  const read = async (chosen: FileList) => {
    const texts = await Promise.all([...chosen].map((file) => file.text()));
    change([...(content.trim() === "" ? [] : [content]), ...texts].join("\n---\n"));
  };
  const result = check.data;
  const error = create.error ?? check.error;
  return (
    <Sheet
      open
      onClose={onClose}
      title="Import rules"
      width="wide"
      footer={
        <>
          <Check label="Switch them on" checked={isEnabled} onChange={setEnabled} />
          <Button className="ml-auto" onClick={onClose}>
            Cancel
          </Button>
          {result === undefined ? (
            <Button look="primary" disabled={content.trim() === "" || check.isPending} onClick={() => check.mutate()}>
              {check.isPending ? "Reading…" : "Show what it would create"}
            </Button>
          ) : (
            <Button
              look="primary"
              disabled={result.imported.length === 0 || create.isPending}
              onClick={() => create.mutate()}
            >
              Create {count(result.imported.length, "rule")}
            </Button>
          )}
        </>
      }
    >
      <div className="space-y-4">
        <div className="flex flex-wrap items-center gap-3">
          <Segments
            label="What it is"
            value={format}
            options={[
              { value: "sigma", label: "Sigma" },
              { value: "tocsin", label: "Rule files of Tocsin" },
            ]}
            onChange={(next) => {
              setFormat(next);
              check.reset();
            }}
          />
          <Button icon="upload" onClick={() => files.current?.click()}>
            Choose files
          </Button>
          <input
            ref={files}
            type="file"
            multiple
            accept=".yml,.yaml,text/yaml"
            aria-label="Files with rules"
            className="hidden"
            onChange={({ target }) => {
              if (target.files !== null) {
                void read(target.files).catch((problem: Error) => showToast(problem.message, { isProblem: true }));
              }
            }}
          />
        </div>
        <TextArea
          label="YAML"
          hint="One rule, or several separated by lines with ---."
          rows={result === undefined ? 14 : 6}
          spellCheck={false}
          className="mono text-xs"
          placeholder={format === "sigma" ? EXAMPLE : "name: site.port_sweep\ndescription: …"}
          value={content}
          onChange={({ target }) => change(target.value)}
        />
        {error !== null && (
          <div role="alert" className="text-sm text-critical">
            <p>{error.message}</p>
            {error instanceof ApiError &&
              error.faults.map(({ field, message }) => (
                <p key={`${field} ${message}`}>
                  <code className="mono">{field}</code> {message}
                </p>
              ))}
          </div>
        )}
        {result !== undefined && <ImportResult result={result} />}
      </div>
    </Sheet>
  );
}

function ImportResult({ result }: { result: RuleImportResult }) {
  return (
    <div className="space-y-4" role="status">
      <section>
        <h3 className="mb-1 text-xs font-semibold">
          {result.imported.length === 0
            ? "No rule would be created"
            : `${count(result.imported.length, "rule")} would be created`}
        </h3>
        <ul className="space-y-1 text-sm">
          {result.imported.map(({ name }) => (
            <li key={name}>
              <code className="mono">{name}</code>
              {result.remarks
                .filter((remark) => remark.name === name)
                .map(({ message, place }) => (
                  <p key={`${place} ${message}`} className="pl-3 text-xs text-ink2">
                    {message}
                  </p>
                ))}
            </li>
          ))}
        </ul>
      </section>
      {result.refused.length > 0 && (
        <section>
          <h3 className="mb-1 text-xs font-semibold">{count(result.refused.length, "rule")} could not be translated</h3>
          <ul className="divide-y divide-line rounded-lg border border-line">
            {result.refused.map(({ name, place, reasons }) => (
              <li key={`${place} ${name}`} className="px-3 py-2">
                <p className="text-sm font-medium break-words">
                  {name} <span className="text-2xs font-normal text-ink3">line {place.replace(/^.*:/, "")}</span>
                </p>
                {reasons.map((reason) => (
                  <p key={reason} className="text-xs break-words text-ink2">
                    {reason}
                  </p>
                ))}
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}
