// Each view is a few requests, which can be repeated in a shell.

import { useState } from "preact/hooks";
import { BASE, signedIn } from "../api/service";
import { quoted } from "../format";
import { announce } from "./announce";
import { Menu } from "./menu";

/** The command that asks for this path. With a body it appends, under a key if there is one. */
export function curlOf(path: string, body?: string, key?: string): string {
  const token = signedIn() ? ` -H "Authorization: Bearer $TOKEN"` : "";
  const once = key === undefined ? "" : ` -H ${quoted(`Idempotency-Key: ${key}`)}`;
  const data = body === undefined ? "" : `${once} -H 'Content-Type: application/json' \\\n  -d ${quoted(body)} \\\n `;
  return `curl -sS${token}${data} ${quoted(BASE + path)}`;
}

/** `name` is what a screen reader calls it, if the label alone does not say what is copied. */
export function CopyButton({ text, label = "Copy", name }: { text: string; label?: string; name?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      // Browsers have a clipboard only in pages that come by https or from this machine.
      await navigator.clipboard.writeText(text);
    } catch {
      announce("Not copied");
      return;
    }
    setCopied(true);
    announce("Copied");
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" class="small" aria-label={name} onClick={copy}>
      {copied ? "Copied" : label}
    </button>
  );
}

/** What to paste into a shell. `label` says what it does. */
export function Commands({ commands, label }: { commands: string[]; label: string }) {
  const text = commands.join("\n");
  return (
    <>
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} />
    </>
  );
}

/** The requests of a view. */
export function Curl({ commands }: { commands: string[] }) {
  return (
    <Menu name="Copy as curl">
      <Commands commands={commands} label="curl commands" />
    </Menu>
  );
}

/** The same below a view that has no other tools. */
export function CurlRow({ commands }: { commands: string[] }) {
  return (
    <div class="row">
      <span class="row end">
        <Curl commands={commands} />
      </span>
    </div>
  );
}
