import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { accessSync, constants, existsSync, lstatSync, statfsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Registry } from "prom-client";
import { openTaughtFormats } from "../collectors/formats/described/taught-formats.ts";
import { describeTaughtFault } from "../collectors/formats/taught-status.ts";
import { socketPathFault } from "../collectors/lines/unix-socket.ts";
import { readTlsFiles, TlsFailure } from "../collectors/lines/tls-files.ts";
import { openSearchOf, postgresOf, type Settings } from "../config/settings.ts";
import { openGeo } from "../enrichment/geo.ts";
import { openLists } from "../enrichment/lists/lists.ts";
import { createLog } from "../lib/log.ts";
import { refusalOf } from "../lib/outgoing.ts";
import { snakeCase } from "../lib/text.ts";
import { CHANNELS } from "../model/rule.ts";
import { CHANNEL_DEFINITIONS } from "../notify/channels.ts";
import { PRIVATE_REMEDY } from "../notify/post.ts";
import { openSearchFileFaults, postgresFileFaults, readPlatformWord } from "../store/open-store.ts";

// Checks the files, paths and addresses that settings name. Each is checked by the part that uses it.

export interface PartFault {
  readonly path: string;
  readonly message: string;
}

export async function partFaults(settings: Settings): Promise<PartFault[]> {
  const faults = await Promise.all([
    addressFaults(settings),
    folderFaults(settings),
    tlsFaults(settings),
    postgresFaults(settings),
    openSearchFaults(settings),
    eveFaults(settings),
    formatFaults(settings),
    enrichmentFaults(settings),
    channelFaults(settings),
  ]);
  return faults.flat();
}

/** Listen addresses that this machine does not have. */
async function addressFaults(settings: Settings): Promise<PartFault[]> {
  const { host, flows, collectors, netflowPort, ipfixPort, sflowPort, syslogPort, syslogTlsPort, evePort } = settings;
  const isOpen = (...ports: (number | null)[]) => ports.some((port) => port !== null);
  const hasFlows = isOpen(netflowPort, ipfixPort, sflowPort);
  const hasLines = isOpen(syslogPort, syslogTlsPort, evePort);
  // The IPv6 wildcard may be unavailable if other addresses are configured.
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

/** Opens a socket on a free port of the address and closes it again: only the system knows what it accepts. */
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

/** Checks that the data folder is usable and belongs to this platform. */
function folderFaults({ dataDir, platform, store }: Settings): PartFault[] {
  const message = dataFolderFault(dataDir);
  if (message !== undefined) return [{ path: "data_dir", message }];
  // The word is kept with the events.
  if (store.data !== "embedded") return [];
  try {
    const known = readPlatformWord(dataDir);
    if (known === undefined || known === platform) return [];
    const needed = `must be ${known}, the word of the events or rules in ${dataDir}; it is ${platform}`;
    return [{ path: "platform", message: needed }];
  } catch (error) {
    return [
      {
        path: "data_dir",
        message: `the contents of ${dataDir} cannot be read: ${firstLine((error as Error).message)}`,
      },
    ];
  }
}

/** Magic numbers of Linux's virtual file systems, in which no folder can be created. */
const KERNEL_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x9fa0, 0x62656572, 0x63677270]);

/** Checks write access to the folder or its nearest existing parent, without creating anything. */
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
  // A missing file is valid: the service waits for it.
  const file = eveFile === null ? undefined : statSync(eveFile, { throwIfNoEntry: false });
  if (file && !file.isFile()) refuse("eve_file", `${eveFile} is not a file`);
  else if (file) refuse("eve_file", accessFault(eveFile!, constants.R_OK, "read"));
  return faults;
}

async function formatFaults({ collectors: { formatsDir } }: Settings): Promise<PartFault[]> {
  if (formatsDir === null) return [];
  const formats = await openTaughtFormats({ folder: formatsDir, ...silentSurroundings() });
  await formats.close();
  const faults = formats.status.faults.filter(({ kind }) => kind === "refused");
  return faults.map((fault) => ({ path: "collectors.formats_dir", message: describeTaughtFault(fault) }));
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

/** Only its files: PostgreSQL may be started later. */
function postgresFaults(settings: Settings): PartFault[] {
  const postgres = postgresOf(settings);
  const faults = postgres ? postgresFileFaults(postgres) : [];
  return faults.map(({ setting, fault }) => ({ path: setting, message: fault }));
}

/** Only its files: OpenSearch may be started later. */
function openSearchFaults(settings: Settings): PartFault[] {
  const opensearch = openSearchOf(settings);
  const faults = opensearch ? openSearchFileFaults(opensearch) : [];
  return faults.map(({ setting, fault }) => ({ path: setting, message: fault }));
}

const silentSurroundings = () => ({ registry: new Registry(), log: createLog({ level: "silent" }), now: Date.now });

async function enrichmentFaults({ enrichment, dataDir }: Settings): Promise<PartFault[]> {
  const surroundings = silentSurroundings();
  const faults: PartFault[] = [];
  if (enrichment.geoFile !== null) {
    const { fault } = (await openGeo({ file: enrichment.geoFile, ...surroundings })).status;
    if (fault) faults.push({ path: "enrichment.geo_file", message: fault.message });
  }
  // A list over the network may become available later, so only files are checked.
  const items = enrichment.lists.filter((item) => !/^[^=]*=https?:\/\//i.test(item));
  const everyMs = enrichment.listsEveryMinutes * 60_000;
  const lists = await openLists({ items, everyMs, dataDir, ...surroundings });
  for (const { name, fault } of lists.status) {
    if (fault) faults.push({ path: "enrichment.lists", message: `${name}: ${fault.message}` });
  }
  lists.close();
  return faults;
}

async function channelFaults({ notifications }: Settings): Promise<PartFault[]> {
  if (notifications.privateAddresses) return [];
  const peers = CHANNELS.flatMap((name) => CHANNEL_DEFINITIONS[name].peerUrls(notifications));
  const checks = peers.map(async ({ setting, url }) => {
    const message = await refusalOf(url, PRIVATE_REMEDY);
    return message === undefined ? [] : [{ path: `notifications.${snakeCase(setting)}`, message }];
  });
  return (await Promise.all(checks)).flat();
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!;
}
