import type { Settings } from "./config.ts";

// What settings say together: each is allowed alone, and still something is missing.

export interface TogetherFault {
  readonly path: string;
  /** The setting that asks for it. */
  readonly because: string;
  readonly message: string;
}

/** What works, and most probably not as it is meant. */
export function warningsTogether({ host, notifications }: Settings): Pick<TogetherFault, "path" | "message">[] {
  const { consoleUrl, slackUrl, emailHost, webhookUrl } = notifications;
  const tellsSomebody = [slackUrl, emailHost, webhookUrl].some((setting) => setting !== null);
  if (consoleUrl !== null || !tellsSomebody || (host !== "0.0.0.0" && host !== "::")) return [];
  const message = `links in messages lead to this machine's own ${host === "::" ? "::1" : "127.0.0.1"}: set it to where people reach the service`;
  return [{ path: "notifications.console_url", message }];
}

export function faultsTogether(settings: Settings): TogetherFault[] {
  const { syslogTlsPort, collectors, enrichment, notifications, analysis } = settings;
  const faults: TogetherFault[] = [];
  const needs = (isMissing: boolean, path: string, because: string, why: string) => {
    if (isMissing) faults.push({ path, because, message: `is needed with ${because}: ${why}` });
  };
  const { emailHost, emailFrom, emailTo, emailUser, emailPassword, emailSecurity } = notifications;
  const hasHost = emailHost !== null;
  const email = (name: string) => `notifications.email_${name}`;
  needs(hasHost && emailFrom === null, email("from"), email("host"), "a mail must be from somebody");
  needs(hasHost && emailTo.length === 0, email("to"), email("host"), "a mail must go to somebody");
  needs(!hasHost && emailFrom !== null, email("host"), email("from"), "nothing sends mails otherwise");
  needs(!hasHost && emailTo.length > 0, email("host"), email("to"), "nothing sends mails otherwise");
  needs(emailUser !== null && emailPassword === null, email("password"), email("user"), "one logs in with both");
  needs(emailPassword !== null && emailUser === null, email("user"), email("password"), "one logs in with both");
  if (emailPassword !== null && emailSecurity === "none") {
    const message = "must be starttls or tls where there is a password: it would cross the network for all to read";
    faults.push({ path: email("security"), because: email("security"), message });
  }
  const { webhookUrl, webhookSecret } = notifications;
  const webhook = { url: "notifications.webhook_url", secret: "notifications.webhook_secret" };
  needs(webhookUrl !== null && webhookSecret === null, webhook.secret, webhook.url, "each post is signed with it");
  needs(webhookSecret !== null && webhookUrl === null, webhook.url, webhook.secret, "nothing is posted otherwise");
  needs(
    analysis.url !== null && analysis.model === null,
    "analysis.model",
    "analysis.url",
    "it is what is asked there",
  );
  const hasTls = syslogTlsPort !== null;
  const { tlsCertificate, tlsKey } = collectors;
  const tls = (name: string) => `collectors.tls_${name}`;
  needs(hasTls && tlsCertificate === null, tls("certificate"), "syslog_tls_port", "it is shown to those who connect");
  needs(hasTls && tlsKey === null, tls("key"), "syslog_tls_port", "it proves the certificate");
  const names = enrichment.lists.map((item) => item.slice(0, item.indexOf("=")));
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) {
    const message = `has two lists with the name ${twice}: events are told apart by it`;
    faults.push({ path: "enrichment.lists", because: "enrichment.lists", message });
  }
  return faults;
}
