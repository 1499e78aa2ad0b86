// Classes of intrusion signatures, by their short names.

/** Class descriptions of Suricata and Snort, and the short names that rules use. */
const CLASSES: Readonly<Record<string, string>> = {
  "not suspicious traffic": "not-suspicious",
  "unknown traffic": "unknown",
  "potentially bad traffic": "bad-unknown",
  "attempted information leak": "attempted-recon",
  "information leak": "successful-recon-limited",
  "large scale information leak": "successful-recon-largescale",
  "attempted denial of service": "attempted-dos",
  "denial of service": "successful-dos",
  "attempted user privilege gain": "attempted-user",
  "unsuccessful user privilege gain": "unsuccessful-user",
  "successful user privilege gain": "successful-user",
  "attempted administrator privilege gain": "attempted-admin",
  "successful administrator privilege gain": "successful-admin",
  "decode of an rpc query": "rpc-portmap-decode",
  "executable code was detected": "shellcode-detect",
  "a suspicious string was detected": "string-detect",
  "a suspicious filename was detected": "suspicious-filename-detect",
  "an attempted login using a suspicious username was detected": "suspicious-login",
  "a system call was detected": "system-call-detect",
  "a tcp connection was detected": "tcp-connection",
  "a network trojan was detected": "trojan-activity",
  "a client was using an unusual port": "unusual-client-port-connection",
  "detection of a network scan": "network-scan",
  "detection of a denial of service attack": "denial-of-service",
  "detection of a non-standard protocol or event": "non-standard-protocol",
  "generic protocol command decode": "protocol-command-decode",
  "access to a potentially vulnerable web application": "web-application-activity",
  "web application attack": "web-application-attack",
  "misc activity": "misc-activity",
  "misc attack": "misc-attack",
  "generic icmp event": "icmp-event",
  "inappropriate content was detected": "inappropriate-content",
  "potential corporate privacy violation": "policy-violation",
  "attempt to login by a default username and password": "default-login-attempt",
  "targeted malicious activity was detected": "targeted-activity",
  "exploit kit activity detected": "exploit-kit",
  "device retrieving external ip address detected": "external-ip-check",
  "domain observed used for c2 detected": "domain-c2",
  "possibly unwanted program detected": "pup-activity",
  "successful credential theft detected": "credential-theft",
  "possible social engineering attempted": "social-engineering",
  "crypto currency mining activity detected": "coin-mining",
  "malware command and control activity detected": "command-and-control",
  "command and control": "command-and-control",
};

/** Class by the first word after `ET` in a signature's name, for devices that do not report the class. */
const SIGNATURE_CLASSES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    MALWARE: "trojan-activity",
    TROJAN: "trojan-activity",
    MOBILE_MALWARE: "trojan-activity",
    WORM: "trojan-activity",
    CNC: "command-and-control",
    EXPLOIT_KIT: "exploit-kit",
    EXPLOIT: "attempted-admin",
    SCAN: "attempted-recon",
    COINMINER: "coin-mining",
    PHISHING: "social-engineering",
    POLICY: "policy-violation",
    P2P: "policy-violation",
    WEB_SERVER: "web-application-attack",
    WEB_SPECIFIC_APPS: "web-application-attack",
    DOS: "attempted-dos",
    DROP: "misc-attack",
    COMPROMISED: "misc-attack",
    CINS: "misc-attack",
    TOR: "misc-attack",
  }),
);

/** Short name of a class; an unknown description is returned unchanged. */
export function threatClass(description: string): string {
  const key = description.toLowerCase();
  return Object.hasOwn(CLASSES, key) ? CLASSES[key]! : description;
}

export function threatClassOfSignature(signature: string): string | undefined {
  if (signature.indexOf("ET ") !== 0) return undefined;
  const end = signature.indexOf(" ", 3);
  const name = SIGNATURE_CLASSES.get(signature.slice(3, end < 0 ? undefined : end));
  return name === "trojan-activity" && signature.includes("CnC") ? "command-and-control" : name;
}
