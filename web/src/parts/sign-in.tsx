// Sign-in, where the service wants it: at the issuer of its tokens, or by a token or a key that the user has.

import { useEffect, useRef, useState } from "preact/hooks";
import { beginSignIn, readIssuer, signInFailure } from "../api/issuer";
import { refusal, signedIn, signIn } from "../api/service";
import { useLoaded } from "./loaded";
import { Problem } from "./problem";
import { Text } from "./text";

export function SignIn({ onDone }: { onDone?: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  const [token, setToken] = useState("");
  const [keep, setKeep] = useState(false);
  const [failure, setFailure] = useState<unknown>(signInFailure);
  const issuer = useLoaded("issuer", readIssuer).data;
  const refused = signedIn() ? refusal() : undefined;
  // A token may end while its user is far down on the page.
  useEffect(() => form.current?.scrollIntoView({ block: "nearest" }), []);
  const submit = (event: Event) => {
    event.preventDefault();
    signIn(token.trim(), keep ? "device" : "tab");
    onDone?.();
  };
  return (
    <form ref={form} class="card narrow" onSubmit={submit}>
      <h2>Sign in</h2>
      {refused === undefined ? (
        <p class="quiet">This service answers only clients that it knows.</p>
      ) : (
        <p class="fault" role="alert">
          The service does not accept this token or key. <Text of={refused} />
        </p>
      )}
      {failure !== undefined && <Problem error={failure} />}
      {issuer && (
        <div class="row">
          <button type="button" class="main" onClick={() => beginSignIn(issuer).catch(setFailure)}>
            Sign in at {new URL(issuer.address).host}
          </button>
          <span class="quiet">It lasts until this page is left or loaded again.</span>
        </div>
      )}
      <label>
        {issuer ? "Or a token or key" : "Token or key"}
        <input
          type="password"
          autoComplete="off"
          spellcheck={false}
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <span class="hint">
          An access token, or a key that begins with <code>pb_</code>
        </span>
      </label>
      <label class="check">
        <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.currentTarget.checked)} />
        Keep it on this device. Otherwise it is forgotten with this tab.
      </label>
      <div class="row">
        <button type="submit" class={issuer ? "" : "main"}>
          Sign in
        </button>
        {signedIn() && (
          <button
            type="button"
            onClick={() => {
              signIn("", "page");
              onDone?.();
            }}
          >
            Sign out
          </button>
        )}
      </div>
    </form>
  );
}
