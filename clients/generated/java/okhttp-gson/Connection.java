import java.io.IOException;
import org.openapitools.client.ApiClient;
import org.openapitools.client.model.Problem;

final class Connection {
  static ApiClient to(String service, String token) {
    var client = new ApiClient().setBasePath(service);
    client.setBearerToken(token);
    return client;
  }

  static Problem problem(String body) throws IOException {
    return Problem.fromJson(body);
  }
}
