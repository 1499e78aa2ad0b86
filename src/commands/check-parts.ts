import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { accessSync, constants, existsSync, lstatSync, statfsSync, statSync } from "node:fs";
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
import { readPlatformWord } from "../store/index.ts";

// What settings name that lies outside of them: files, paths, addresses. Each is looked at by the part that will use it.

export interface PartFault {
  readonly path: string;
  readonly message: string;
}

export async function partFaults(settings: Settings): Promise<PartFault[]> {
  const faults = await Promise.all([
    addressFaults(settings),
    folderFaults(settings),
    tlsFaults(settings),
    eveFaults(settings),
    enrichmentFaults(settings),
    channelFaults(settings),
  ]);
  return faults.flat();
}

/** Which of the addresses that the service would listen on this machine has not. */
async function addressFaults(settings: Settings): Promise<PartFault[]> {
  const { host, flows, collectors, netflowPort, ipfixPort, sflowPort, syslogPort, syslogTlsPort, evePort } = settings;
  const isOpen = (...ports: (number | null)[]) => ports.some((port) => port !== null);
  const hasFlows = isOpen(netflowPort, ipfixPort, sflowPort);
  const hasLines = isOpen(syslogPort, syslogTlsPort, evePort);
  // Every interface means every one that there is: beside others, that of IPv6 may be missing.
  const needed = (addresses: readonly string[]) =>
    addresses.filter((address) => address !== "::" || addresses.length === 1);
  const asked = [
    { path: "host", addresses: [host] },
    ...(hasFlows ? [{ path: "flows.addresses", addresses: needed(flows.addresses) }] : []),
    ...(hasLines ? [{ path: "collectors.addresses", addresses: needed(collectors.addresses) }] : []),
  ];
  const found = asked.flatMap(({ path, addresses }) =>
    addresses.map(async (address) => {
      const message = await addressFault(address);
      return message === undefined ? [] : [{ path, message }];
    }),
  );
  return (await Promise.all(found)).flat();
}

/** The system knows best what may be listened on: a socket on a port that nobody uses is opened there and closed again. */
async function addressFault(host: string): Promise<string | undefined> {
  try {
    const { address, family } = await lookup(host);
    const socket = createSocket(family === 6 ? "udp6" : "udp4");
    try {
      socket.bind({ address, port: 0, exclusive: true });
      await once(socket, "listening");
    } finally {
      socket.close();
    }
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EADDRNOTAVAIL") return `this machine has no address ${host}`;
    return `${host} cannot be listened on: ${code === "ENOTFOUND" ? "there is no host of that name" : message}`;
  }
}

/** What the settings say of the folder, and the folder of them. */
function folderFaults({ dataDir, platform }: Settings): PartFault[] {
  const message = dataFolderFault(dataDir);
  if (message !== undefined) return [{ path: "data_dir", message }];
  try {
    const known = readPlatformWord(dataDir);
    if (known === undefined || known === platform) return [];
    const needed = `must be ${known}, the word of the events or rules in ${dataDir}; it is ${platform}`;
    return [{ path: "platform", message: needed }];
  } catch (error) {
    return [
      { path: "data_dir", message: `what is in ${dataDir} cannot be read: ${firstLine((error as Error).message)}` },
    ];
  }
}

/** File systems of the kernel's own, which make no folder for anyone: those of Linux, by their numbers. */
const KERNEL_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x9fa0, 0x62656572, 0x63677270]);

/** Whether the folder, or the nearest one above it that exists, can be written: asked, not tried. */
function dataFolderFault(dataDir: string): string | undefined {
  let folder = dataDir;
  try {
    while (!existsSync(folder) && dirname(folder) !== folder) {
      if (isLink(folder)) return `${folder} is a link that leads nowhere`;
      folder = dirname(folder);
    }
    if (!statSync(folder).isDirectory()) return `${folder} is not a folder`;
    if (KERNEL_FILE_SYSTEMS.has(statfsSync(folder).type)) return `no folder can be made in ${folder}`;
  } catch (error) {
    return `${folder} cannot be looked at by this user (${(error as NodeJS.ErrnoException).code})`;
  }
  return accessFault(folder, constants.R_OK | constants.W_OK | constants.X_OK, "written");
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
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
