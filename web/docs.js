// A body of lines has one JSON value a line. Swagger UI spreads the example of a line over several lines: they are joined again.
const joinLine = (request) => {
  const type = request.headers?.["Content-Type"] ?? "";
  if (type.startsWith("application/x-ndjson") && typeof request.body === "string") {
    try {
      JSON.parse(request.body);
      request.body = request.body.replace(/\s*\n\s*/g, " ");
    } catch {
      // Several lines, or no JSON: they are sent as they are.
    }
  }
  return request;
};

// An answer is shown when it has ended, and a live stream does not end by itself: there is no button to try it.
const withoutStreams = () => ({
  statePlugins: { spec: { wrapSelectors: { allowTryItOutFor: () => (_state, path) => !path.endsWith("/live") } } },
});

// Where the service is. A proxy may serve it below a path, which the document does not know: requests get it here.
const root = new URL("../", document.currentScript.src);
const belowRoot = (request) => {
  const { origin, pathname, search } = new URL(request.url, location.href);
  if (origin === root.origin && !pathname.startsWith(root.pathname)) request.url = root.href.slice(0, -1) + pathname + search;
  return request;
};

// Light or dark, as the explorer is.
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => {
  let theme;
  try {
    theme = localStorage.getItem("pagebucket.theme");
  } catch {
    // The browser keeps nothing for this page.
  }
  document.documentElement.classList.toggle("dark-mode", theme === "dark" || (theme !== "light" && dark.matches));
};
dark.addEventListener("change", paint);
paint();

SwaggerUIBundle({
  url: "../openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // The validator would be an external service.
  validatorUrl: "none",
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [SwaggerUIBundle.plugins.DownloadUrl, withoutStreams],
  requestInterceptor: (request) => belowRoot(joinLine(request)),
});
