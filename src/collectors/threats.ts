// What intrusion systems say about a threat: the class of a signature by its short name, whichever way it was told.

/** The sentences that Suricata and its like write, and the short names that rules know them by. */
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

/** The first word of a signature's name behind `ET`, where the device does not tell its class. */
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

/** The short name of a class; what is not known stays as it is. */
export function threatClass(sentence: string): string {
  const known = sentence.toLowerCase();
  return Object.hasOwn(CLASSES, known) ? CLASSES[known]! : sentence;
}

export function threatClassOfSignature(signature: string): string | undefined {
  if (signature.indexOf("ET ") !== 0) return undefined;
  const end = signature.indexOf(" ", 3);
  const found = SIGNATURE_CLASSES.get(signature.slice(3, end < 0 ? undefined : end));
  return found === "trojan-activity" && signature.includes("CnC") ? "command-and-control" : found;
}
