// A token or a key, where the service wants one.

import { useState } from "preact/hooks";
import { signedIn, signIn } from "../api/service";

export function SignIn({ onDone }: { onDone?: () => void }) {
  const [token, setToken] = useState("");
  const [keep, setKeep] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    signIn(token.trim(), keep);
    onDone?.();
  };
  return (
    <form class="card narrow" onSubmit={submit}>
      <h2>Sign in</h2>
      <p class="quiet">
        This service answers only clients that it knows: by an access token, or by a key that begins with <code>pb_</code>.
      </p>
      <label>
        Token or key
        <input
          type="password"
          autoComplete="off"
          spellcheck={false}
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <label class="check">
        <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.currentTarget.checked)} />
        Keep it on this device. Otherwise it is forgotten with this tab.
      </label>
      <div class="row">
        <button type="submit" class="main">
          Sign in
        </button>
        {signedIn() && (
          <button
            type="button"
            onClick={() => {
              signIn("", false);
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
