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

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // The validator would be an external service.
  validatorUrl: "none",
  layout: "StandaloneLayout",
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  plugins: [SwaggerUIBundle.plugins.DownloadUrl],
  requestInterceptor: joinLine,
});
