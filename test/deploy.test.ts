import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { loadSettings, type LoadedSettings } from "../src/config/config.ts";

// The files of deploy/ cannot be run where there are no containers. What can be checked without: they are YAML, and their names, ports
// and settings agree with each other and with the service.

const folder = fileURLToPath(new URL("../deploy/", import.meta.url));

/** Throws on what is not YAML, and on keys that occur twice. */
function readYaml(file: string): any[] {
  const documents = parseAllDocuments(readFileSync(join(folder, file), "utf8"), { merge: true });
  if (!Array.isArray(documents)) throw new Error(`${file} is empty`);
  return documents.map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS();
  });
}

function settingsOf(environment: Record<string, string>, configFile?: string): LoadedSettings["settings"] {
  const outcome = loadSettings({ environment, configFile, workingFolder: tmpdir() });
  if ("faults" in outcome) throw new Error(JSON.stringify(outcome.faults));
  return outcome.settings;
}

const DEFAULTS = settingsOf({});
/** What the service listens on unless it is set otherwise. */
const PORTS = [
  `${DEFAULTS.port}/tcp`,
  `${DEFAULTS.syslogPort}/tcp`,
  `${DEFAULTS.syslogPort}/udp`,
  `${DEFAULTS.netflowPort}/udp`,
  `${DEFAULTS.ipfixPort}/tcp`,
  `${DEFAULTS.ipfixPort}/udp`,
  `${DEFAULTS.sflowPort}/udp`,
].toSorted();
const { version } = JSON.parse(readFileSync(join(folder, "../package.json"), "utf8")) as { version: string };

describe("the image", () => {
  const text = readFileSync(join(folder, "Dockerfile"), "utf8");

  test("exposes the service's ports and does not run as root", () => {
    const exposed = /^EXPOSE (.*)$/m.exec(text)![1]!.split(" ");
    expect(exposed.toSorted()).toEqual(PORTS);
    expect(/^USER (\d+):\d+$/m.exec(text)?.[1]).toBe("10001");
  });

  test("copies what exists, and sets only settings that exist", () => {
    const environment = Object.fromEntries(
      [...text.matchAll(/(TOCSIN_\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
    );
    expect(settingsOf(environment)).toMatchObject({ host: "0.0.0.0", dataDir: "/var/lib/tocsin" });
    const project = readdirSync(join(folder, ".."));
    const copied = [...text.matchAll(/COPY --from=build \/opt\/tocsin\/([^/\s]+)/g)].map(([, name]) => name!);
    expect(project).toEqual(expect.arrayContaining(copied));
  });
});

describe("compose.yaml", () => {
  const [compose] = readYaml("compose.yaml");
  const services = Object.entries<any>(compose.services);
  const nodes = services.filter(([name]) => name.startsWith("tocsin-"));

  test("names only services, volumes, networks and secrets that it has", () => {
    for (const [name, service] of services) {
      expect(Object.keys(compose.services), name).toEqual(
        expect.arrayContaining(Object.keys(service.depends_on ?? {})),
      );
      expect(Object.keys(compose.networks), name).toEqual(expect.arrayContaining(service.networks));
      expect(Object.keys(compose.secrets), name).toEqual(expect.arrayContaining(service.secrets ?? []));
      const volumes = (service.volumes as string[]).map((volume) => volume.split(":")[0]!);
      expect(Object.keys(compose.volumes), name).toEqual(expect.arrayContaining(volumes));
    }
    const used = services.flatMap(([, { volumes }]) => (volumes as string[]).map((volume) => volume.split(":")[0]!));
    expect([...new Set(used)].toSorted()).toEqual(Object.keys(compose.volumes).toSorted());
  });

  test("limits memory, checks health, restarts, and has a version for each image", () => {
    for (const [name, service] of services) {
      expect(service, name).toMatchObject({ mem_limit: expect.anything(), restart: "unless-stopped" });
      expect(service.healthcheck?.test, name).toBeDefined();
      expect(service.image, name).toMatch(/:\d+[\w.-]*$/);
    }
  });

  test("has no password, and publishes no port of an engine", () => {
    const text = JSON.stringify(compose);
    expect(text).not.toMatch(/password"?:\s*"(?!.*\/run\/secrets)[^"]+"/i);
    for (const [name, service] of services) {
      for (const [key, value] of Object.entries<string>(service.environment))
        if (/PASSWORD/.test(key))
          expect([key, value], name).toEqual([
            expect.stringMatching(/_FILE$/),
            expect.stringMatching(/^\/run\/secrets\//),
          ]);
      if (!name.startsWith("tocsin-")) expect(service.ports, name).toBeUndefined();
    }
    expect(compose.networks.engines.internal).toBe(true);
  });

  test("gives the nodes settings that the service accepts, and addresses of its other services", () => {
    expect(nodes).toHaveLength(3);
    const engines = services.filter(([name]) => name.startsWith("opensearch-")).map(([name]) => name);
    expect(engines).toHaveLength(3);
    for (const [name, node] of nodes) {
      const settings = settingsOf({ ...node.environment, TOCSIN_HOST: "0.0.0.0" });
      expect(node.volumes, name).toContain(`exports:${settings.exports.folder}`);
      expect(settings, name).toMatchObject({ store: { cases: "postgres", data: "opensearch" } });
      expect(settings.opensearch.addresses).toEqual(engines.map((engine) => `http://${engine}:9200`));
      expect(settings.opensearch.replicas).toBeGreaterThan(0);
      expect(URL.parse(settings.postgres.url!)?.hostname).toBe("postgres");
      expect(node).toMatchObject({ read_only: true, cap_drop: ["ALL"], image: `tocsin:${version}` });
      expect(node.healthcheck.test.join(" ")).toContain(`:${settings.port}/readyz`);
    }
    const published = nodes.flatMap(([, { ports }]) => ports as string[]);
    const hostPorts = published.map((port) => port.replace(/^127\.0\.0\.1:/, "").replace(/:\d+/, ""));
    expect(new Set(hostPorts).size, "no host port twice").toBe(hostPorts.length);
    const inside = published
      .map((port) => /(\d+)(?:\/(tcp|udp))?$/.exec(port)!)
      .map(([, port, kind = "tcp"]) => `${port}/${kind}`);
    expect([...new Set(inside)].toSorted()).toEqual(PORTS);
  });
});

describe("the files for Kubernetes", () => {
  const files = readdirSync(join(folder, "kubernetes")).filter((file) => file.endsWith(".yaml"));
  const objects = files.flatMap((file) => readYaml(join("kubernetes", file)));
  const one = (kind: string, name = "tocsin") =>
    objects.find((object) => object.kind === kind && object.metadata?.name === name);
  const set = one("StatefulSet");
  const pod = set.spec.template.spec;
  const [container] = pod.containers;
  const portNames = new Map<string, any>(container.ports.map((port: any) => [port.name, port]));

  test("are all applied, except the template of the secret, in one namespace", () => {
    const { resources } = readYaml("kubernetes/kustomization.yaml")[0];
    const applied = files.filter((file) => !["kustomization.yaml", "secret.example.yaml"].includes(file));
    expect(resources.toSorted()).toEqual(applied.toSorted());
    for (const { kind, metadata } of objects)
      if (metadata && kind !== "Namespace") expect([kind, metadata.namespace]).toEqual([kind, "tocsin"]);
  });

  test("select the nodes by the labels that they have", () => {
    const { labels } = set.spec.template.metadata;
    const selectors = [
      set.spec.selector.matchLabels,
      one("PodDisruptionBudget").spec.selector.matchLabels,
      one("NetworkPolicy").spec.podSelector.matchLabels,
      pod.topologySpreadConstraints[0].labelSelector.matchLabels,
      ...objects.filter(({ kind }) => kind === "Service").map(({ spec }) => spec.selector),
    ];
    for (const selector of selectors) expect(labels).toMatchObject(selector);
    expect(one("Service", set.spec.serviceName).spec.clusterIP).toBe("None");
    expect(one("PodDisruptionBudget").spec.minAvailable).toBeLessThan(set.spec.replicas);
  });

  test("open, offer and let through the ports that the service listens on", () => {
    const config = mkdtempSync(join(tmpdir(), "tocsin-deploy-"));
    try {
      const file = join(config, "tocsin.yaml");
      writeFileSync(file, one("ConfigMap").data["tocsin.yaml"]);
      const settings = settingsOf({}, file);
      expect(settings).toMatchObject({ store: { cases: "postgres", data: "opensearch" }, host: "0.0.0.0" });
      const secret = Object.keys(one("Secret").stringData);
      const named = [settings.postgres.passwordFile, settings.opensearch.passwordFile, settings.opensearch.tlsCa];
      expect(named.map((path) => path?.replace("/run/secrets/tocsin/", ""))).toEqual(secret);
      expect(settings.dataDir).toBe(container.volumeMounts.find(({ name }: any) => name === "data").mountPath);
      expect(settings.exports.folder).toBe(
        container.volumeMounts.find(({ name }: any) => name === "exports").mountPath,
      );
      const shared = pod.volumes.find(({ name }: any) => name === "exports").persistentVolumeClaim.claimName;
      expect(one("PersistentVolumeClaim", shared).spec.accessModes).toEqual(["ReadWriteMany"]);
    } finally {
      rmSync(config, { recursive: true });
    }
    const opened = [...portNames.values()].map(
      ({ containerPort, protocol }) => `${containerPort}/${protocol.toLowerCase()}`,
    );
    expect(opened.toSorted()).toEqual(PORTS);
    const offered = ["tocsin", "tocsin-collectors"].flatMap((name) => one("Service", name).spec.ports);
    for (const { port, targetPort, protocol } of offered)
      expect(portNames.get(targetPort)).toMatchObject({ containerPort: port, protocol });
    expect(offered).toHaveLength(PORTS.length);
    const allowed = one("NetworkPolicy").spec.ingress.flatMap(({ ports }: any) => ports);
    expect(allowed.map(({ port }: any) => port).toSorted()).toEqual([...portNames.keys()].toSorted());
    for (const { port, protocol } of allowed) expect(portNames.get(port).protocol).toBe(protocol);
  });

  test("run without privileges, with probes, limits and volumes that exist", () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001 });
    expect(container.securityContext).toMatchObject({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true });
    expect(container.securityContext.capabilities).toEqual({ drop: ["ALL"] });
    expect(container.livenessProbe.httpGet).toEqual({ path: "/healthz", port: "http" });
    expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "http" });
    expect(container.resources.limits.memory).toBeDefined();
    const volumes = [...pod.volumes, ...set.spec.volumeClaimTemplates.map(({ metadata }: any) => metadata)];
    expect(container.volumeMounts.map(({ name }: any) => name).toSorted()).toEqual(
      volumes.map(({ name }) => name).toSorted(),
    );
    const image = readYaml("kubernetes/kustomization.yaml")[0].images[0];
    expect(container.image).toBe(`${image.name}:${version}`);
    expect(image.newTag).toBe(version);
    expect(container.args).toEqual(["serve", "--config", "/etc/tocsin/tocsin.yaml"]);
  });
});
