import com.fasterxml.jackson.core.JsonProcessingException;
import org.openapitools.client.ApiClient;
import org.openapitools.client.model.Problem;

/** It knows nothing of tokens: they are headers of its requests. */
final class Connection {
  static ApiClient to(String service, String token) {
    var client = new ApiClient();
    client.updateBaseUri(service);
    return client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
  }

  static Problem problem(String body) throws JsonProcessingException {
    return ApiClient.createDefaultObjectMapper().readValue(body, Problem.class);
  }
}
