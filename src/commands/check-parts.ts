import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Registry } from "prom-client";
import { socketPathFault } from "../collectors/inlet/unix-socket.ts";
import { readTlsFiles, TlsFailure } from "../collectors/inlet/tls-files.ts";
import type { Settings } from "../config/config.ts";
import { Geo } from "../enrichment/geo.ts";
import { Lists } from "../enrichment/lists/lists.ts";
import { createLog } from "../lib/log.ts";
import { refusalOf } from "../lib/outgoing.ts";
import { PRIVATE_REMEDY } from "../notify/post.ts";

// What settings name that lies outside of them: files, paths, addresses. Each is looked at by the part that will use it.

export interface PartFault {
  readonly path: string;
  readonly message: string;
}

export async function partFaults(settings: Settings): Promise<PartFault[]> {
  const faults = await Promise.all([
    dataFolderFaults(settings.dataDir),
    tlsFaults(settings),
    eveFaults(settings),
    enrichmentFaults(settings),
    channelFaults(settings),
  ]);
  return faults.flat();
}

/** Whether the folder, or the nearest one above it that exists, can be written: asked, not tried. */
function dataFolderFaults(dataDir: string): PartFault[] {
  let folder = dataDir;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  const message = statSync(folder).isDirectory()
    ? accessFault(folder, constants.R_OK | constants.W_OK | constants.X_OK, "written")
    : `${folder} is not a folder`;
  return message === undefined ? [] : [{ path: "data_dir", message }];
}

function tlsFaults({ syslogTlsPort, collectors }: Settings): PartFault[] {
  if (syslogTlsPort === null) return [];
  try {
    readTlsFiles(collectors);
    return [];
  } catch (error) {
    if (!(error instanceof TlsFailure)) throw error;
    return [{ path: error.setting, message: firstLine(error.message) }];
  }
}

function eveFaults({ eveSocket, eveFile }: Settings): PartFault[] {
  const faults: PartFault[] = [];
  const refuse = (path: string, message: string | undefined) => {
    if (message !== undefined) faults.push({ path, message });
  };
  if (eveSocket !== null) refuse("eve_socket", socketPathFault(eveSocket) ?? folderFault(dirname(resolve(eveSocket))));
  // One that is not there yet is waited for.
  const file = eveFile === null ? undefined : statSync(eveFile, { throwIfNoEntry: false });
  if (file && !file.isFile()) refuse("eve_file", `${eveFile} is not a file`);
  else if (file) refuse("eve_file", accessFault(eveFile!, constants.R_OK, "read"));
  return faults;
}

function folderFault(folder: string): string | undefined {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return `there is no folder ${folder}`;
  return accessFault(folder, constants.W_OK | constants.X_OK, "written");
}

function accessFault(path: string, mode: number, verb: string): string | undefined {
  try {
    accessSync(path, mode);
    return undefined;
  } catch (error) {
    return `${path} cannot be ${verb} by this user (${(error as NodeJS.ErrnoException).code})`;
  }
}

async function enrichmentFaults({ enrichment, dataDir }: Settings): Promise<PartFault[]> {
  const surroundings = { registry: new Registry(), log: createLog({ level: "silent" }), now: Date.now };
  const faults: PartFault[] = [];
  if (enrichment.geoFile !== null) {
    const { fault } = (await Geo.open({ file: enrichment.geoFile, ...surroundings })).status;
    if (fault) faults.push({ path: "enrichment.geo_file", message: fault.message });
  }
  // What must be fetched may be there later; a file is there or it is not.
  const items = enrichment.lists.filter((item) => !/^[^=]*=https?:\/\//i.test(item));
  const everyMs = enrichment.listsEveryMinutes * 60_000;
  const lists = await Lists.open({ items, everyMs, dataDir, ...surroundings });
  for (const { name, fault } of lists.status) {
    if (fault) faults.push({ path: "enrichment.lists", message: `${name}: ${fault.message}` });
  }
  lists.close();
  return faults;
}

async function channelFaults({ notifications }: Settings): Promise<PartFault[]> {
  const { slackUrl, webhookUrl, privateAddresses } = notifications;
  if (privateAddresses) return [];
  const urls = [
    { path: "notifications.slack_url", url: slackUrl },
    { path: "notifications.webhook_url", url: webhookUrl },
  ];
  const asked = urls.map(async ({ path, url }) => {
    const message = url === null ? undefined : await refusalOf(url, PRIVATE_REMEDY);
    return message === undefined ? [] : [{ path, message }];
  });
  return (await Promise.all(asked)).flat();
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!;
}
