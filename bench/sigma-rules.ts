import { stringify } from "yaml";
import { randomFrom, type Random } from "../src/demo/random.ts";
import type { EventDraft, JsonObject } from "../src/model/event.ts";
import { sourceNames } from "../src/model/event.ts";
import type { RuleInput } from "../src/model/rule-schema.ts";
import { importSigma } from "../src/sigma/import.ts";
import { PLATFORM } from "./dataset.ts";

// Made-up Sigma rules with the shapes and proportions of public collections, which go through the normal import; and process
// events, of which few match.

const SEED = 3000;
/** Two out of five public rules cover process creation; the others cover files, registries, scripts and logs. */
const PROCESS_SHARE = 0.4;
const CATEGORIES = [
  "file_event",
  "registry_set",
  "image_load",
  "ps_script",
  "network_connection",
  "dns_query",
] as const;

const COMMON_PROGRAMS = (
  "cmd powershell pwsh rundll32 regsvr32 reg schtasks wmic net net1 certutil mshta cscript wscript msbuild bitsadmin " +
  "sc tasklist whoami nltest vssadmin wevtutil curl explorer svchost taskkill icacls attrib ping msiexec installutil"
).split(" ");
const PARENTS = "winword excel outlook powerpnt w3wp sqlservr services wmiprvse explorer httpd java tomcat node".split(
  " ",
);
const WORDS = (
  "download string invoke expression hidden bypass noprofile encoded shadow delete create query export import save " +
  "start stop disable enable service task account domain admin group user add remove dump process memory lsass ticket " +
  "hash secret key token registry run once startup script remote session share copy move rename archive password " +
  "javascript vbscript about http https ftp proxy tunnel listen connect bind shell execute call method class load"
).split(" ");
const SYLLABLES =
  "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xa yo ze bra cle dri flo gru pla ste tri".split(" ");
const FOLDERS = [
  "C:\\Program Files\\",
  "C:\\Program Files (x86)\\",
  "C:\\Windows\\System32\\",
  "C:\\Windows\\SysWOW64\\",
];
const EXTENSIONS = ["exe", "dll", "ps1", "bat", "vbs", "js", "hta", "lnk", "zip", "iso"];

function makeWord(random: Random): string {
  let word = "";
  for (let left = random.between(3, 4); left > 0; left--) word += random.pick(SYLLABLES);
  return word;
}

/** Well-known programs are in many rules, most others in one. */
function program(random: Random): string {
  return random.onceIn(3)
    ? COMMON_PROGRAMS[Math.floor(random.next() ** 2 * COMMON_PROGRAMS.length)]!
    : makeWord(random);
}

function argument(random: Random): string {
  switch (random.below(6)) {
    case 0:
      return ` -${makeWord(random)} `;
    case 1:
      return ` /${makeWord(random)}`;
    case 2:
      return `${random.pick(WORDS)}-${makeWord(random)}`;
    case 3:
      return `\\${makeWord(random)}\\`;
    case 4:
      return `${makeWord(random)}.${random.pick(EXTENSIONS)}`;
    default:
      return `${random.pick(WORDS)} ${makeWord(random)}`;
  }
}

function several<Item>(random: Random, least: number, most: number, make: () => Item): Item[] {
  return Array.from({ length: random.between(least, most) }, make);
}

const oneOrAll = <Item>(items: Item[]): Item | Item[] => (items.length === 1 ? items[0]! : items);

/** The detection of a rule on process creation. */
function processDetection(random: Random): JsonObject {
  const detection: JsonObject = {};
  const selections: string[] = [];
  const select = (name: string, selection: JsonObject | JsonObject[]) => {
    detection[name] = selection;
    selections.push(name);
  };
  if (random.next() < 0.55) {
    const programs = several(random, 1, random.onceIn(3) ? 6 : 2, () => program(random));
    const images = oneOrAll(programs.map((name) => `\\${name}.exe`));
    if (random.onceIn(2)) select("selection_img", { "Image|endswith": images });
    else {
      const originals = oneOrAll(programs.map((name) => `${name}.exe`));
      select("selection_img", [{ "Image|endswith": images }, { OriginalFileName: originals }]);
    }
  }
  if (random.next() < 0.16) {
    const parents = several(random, 1, 5, () => `\\${random.onceIn(2) ? random.pick(PARENTS) : makeWord(random)}.exe`);
    select("selection_parent", { "ParentImage|endswith": oneOrAll(parents) });
  }
  // Common programs are only suspicious with certain arguments.
  if (random.next() < 0.7 || selections.length < 2) {
    const kind = random.next();
    if (kind < 0.05) {
      const pattern = `${random.pick(WORDS)}\\s+[-/]${makeWord(random)}\\S{1,20}\\.${random.pick(EXTENSIONS)}`;
      select("selection_cli", { "CommandLine|re": pattern });
    } else if (kind < 0.35)
      select("selection_cli", { "CommandLine|contains|all": several(random, 2, 4, () => argument(random)) });
    else if (kind < 0.42) {
      select("selection_cli", {
        "CommandLine|contains|windash": oneOrAll(several(random, 1, 3, () => ` -${makeWord(random)} `)),
      });
    } else
      select("selection_cli", {
        "CommandLine|contains": oneOrAll(several(random, 1, random.onceIn(4) ? 25 : 6, () => argument(random))),
      });
  }
  let condition = selections.length === 1 ? selections[0]! : "all of selection_*";
  if (random.next() < 0.27) {
    for (let number = random.between(1, 3); number > 0; number--) {
      detection[`filter_main_${number}`] = random.onceIn(2)
        ? { "Image|startswith": oneOrAll(several(random, 1, 2, () => random.pick(FOLDERS) + makeWord(random))) }
        : { "ParentImage|endswith": `\\${makeWord(random)}.exe`, "CommandLine|contains": argument(random) };
    }
    condition += " and not 1 of filter_main_*";
  }
  return { ...detection, condition };
}

function otherDetection(random: Random): JsonObject {
  const field = random.pick([
    "TargetFilename|endswith",
    "TargetObject|contains",
    "ScriptBlockText|contains",
    "ImageLoaded|endswith",
  ]);
  const selection = { [field]: oneOrAll(several(random, 1, 6, () => argument(random))) };
  return { selection, condition: "selection" };
}

export interface SigmaSetOptions {
  readonly processShare?: number;
  readonly seed?: number;
}

/** The rules as one text of several YAML documents. */
function sigmaText(count: number, { processShare = PROCESS_SHARE, seed = SEED }: SigmaSetOptions = {}): string {
  const random = randomFrom(seed);
  const documents = Array.from({ length: count }, (_, i) => {
    const isProcess = random.next() < processShare;
    return stringify({
      title: `Made-up rule ${i + 1}: ${random.pick(WORDS)} by ${makeWord(random)}`,
      status: "test",
      level: random.pick(["low", "medium", "medium", "high", "high", "critical"]),
      tags: ["attack.execution", `attack.t${random.between(1001, 1600)}`],
      logsource: { product: "windows", category: isProcess ? "process_creation" : random.pick(CATEGORIES) },
      detection: isProcess ? processDetection(random) : otherDetection(random),
    });
  });
  return documents.join("---\n");
}

/** The same rules after the import. */
export function sigmaRules(count: number, options?: SigmaSetOptions): RuleInput[] {
  const outcomes = importSigma([{ name: "made-up.yml", content: sigmaText(count, options) }], {
    sources: sourceNames(PLATFORM),
  });
  return outcomes.map(({ rule, reasons, title }) => {
    if (!rule) throw new Error(`${title}: ${JSON.stringify(reasons)}`);
    return rule;
  });
}

/** An argument of everyday command lines. */
function ordinaryArgument(random: Random): string {
  switch (random.below(4)) {
    case 0:
      return `--${random.pick(WORDS)}=${random.below(100_000)}`;
    case 1:
      return `/${random.pick(WORDS)}`;
    case 2:
      return `"${random.pick(FOLDERS)}${random.pick(WORDS)}\\${random.pick(WORDS)}.${random.pick(EXTENSIONS)}"`;
    default:
      return `-${random.pick(WORDS)} {${random.below(0xffff_ffff).toString(16)}-${random.below(0xffff).toString(16)}}`;
  }
}

/** Process events in order of time: mostly ordinary, now and then one that a rule covers. */
export function* processEvents(count: number, fromMs: number, seed = SEED): Iterable<EventDraft> {
  const random = randomFrom(seed + 1);
  // The same seed gives the same vocabulary, so that some events match the rules.
  const words = randomFrom(seed);
  for (let i = 0; i < count; i++) {
    const name = program(random.onceIn(20) ? words : random);
    const parent = random.onceIn(3) ? random.pick(PARENTS) : random.pick(COMMON_PROGRAMS);
    const folder = random.onceIn(6) ? `C:\\Users\\${makeWord(random)}\\AppData\\Local\\Temp\\` : random.pick(FOLDERS);
    const image = `${folder}${name}.exe`;
    const commandLine = `"${image}" ${several(random, 1, 8, () => (random.onceIn(60) ? argument(words) : ordinaryArgument(random))).join(" ")}`;
    yield {
      type: "process_creation",
      source: "custom",
      severity: "info",
      class: "security",
      timestampMs: fromMs + i,
      raw: {
        UtcTime: new Date(fromMs + i).toISOString(),
        Computer: `ws-${random.below(500)}.example.com`,
        User: `EXAMPLE\\${makeWord(random)}`,
        ProcessId: random.between(100, 60_000),
        Image: image,
        OriginalFileName: `${name}.exe`,
        CommandLine: commandLine,
        CurrentDirectory: folder,
        ParentImage: `C:\\Windows\\System32\\${parent}.exe`,
        ParentCommandLine: `${parent}.exe ${ordinaryArgument(random)}`,
        IntegrityLevel: random.pick(["Low", "Medium", "High", "System"]),
        Company: "Example Corporation",
        Description: `${name} ${random.pick(WORDS)}`,
        Hashes: `SHA256=${random.below(0xffff_ffff).toString(16).padStart(8, "0").repeat(8)}`,
      },
      enrichment: {},
    };
  }
}
