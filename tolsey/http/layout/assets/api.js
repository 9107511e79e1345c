// This Swagger UI draws 3.1 documents well but refuses their version number.
fetch("/openapi.json").then(answer => answer.json()).then(spec => {
  spec.openapi = "3.0.3";
  SwaggerUIBundle({dom_id: "#api", spec, deepLinking: true, validatorUrl: null});
});
