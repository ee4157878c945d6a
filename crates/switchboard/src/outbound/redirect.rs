//! Where a redirect leads, and which headers go along. Pure: the client asks for each step and dials under its policy.

use http::header::{AUTHORIZATION, COOKIE, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, StatusCode, Uri};

use super::error::{Error, ErrorKind, shown_host};
use super::target::check_url;

/// The URL that an answer redirects to; none if it is no redirect, or one that names no URL.
pub(crate) fn target(from: &Uri, status: StatusCode, headers: &HeaderMap) -> Result<Option<Uri>, Error> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = headers.get(LOCATION) else { return Ok(None) };
    let unfit = |why: &str| {
        Error::sent(
            ErrorKind::InvalidRequest,
            format!("{} redirects to a URL that cannot be called: {why}", shown_host(from)),
        )
    };
    let location = location.to_str().map_err(|_| unfit("it is not ASCII"))?;
    let to = check_url(&absolute(from, location)).map_err(|why| unfit(&why))?;
    if from.scheme_str() == Some("https") && to.scheme_str() != Some("https") {
        let why = format!("{} redirects from https to http, which is not followed", shown_host(from));
        return Err(Error::sent(ErrorKind::Refused, why));
    }
    Ok(Some(to))
}

/// Whether a request with this method follows redirects at all.
pub(super) fn follows(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Sends the request elsewhere. Credentials stay with the origin they were given for.
pub(crate) fn retarget<B>(request: &mut Request<B>, to: Uri) {
    let from = request.uri();
    if from.scheme() != to.scheme() || from.authority() != to.authority() {
        let headers = request.headers_mut();
        for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
            headers.remove(name);
        }
        let secret = headers.iter().filter(|(_, value)| value.is_sensitive()).map(|(name, _)| name.clone());
        for name in secret.collect::<Vec<_>>() {
            headers.remove(name);
        }
    }
    *request.uri_mut() = to;
}

/// A reference as an absolute URL (RFC 3986, 5.2), without its fragment. Dots in a path are left to the server.
fn absolute(base: &Uri, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or_default();
    let scheme = base.scheme_str().unwrap_or_default();
    let origin = format!("{scheme}://{}", base.authority().map_or("", |authority| authority.as_str()));
    let has_scheme = reference.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
    if has_scheme {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else if reference.starts_with('/') {
        format!("{origin}{reference}")
    } else if reference.starts_with('?') || reference.is_empty() {
        format!("{origin}{}{reference}", base.path())
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{origin}{folder}/{reference}")
    }
}

#[cfg(test)]
mod tests {
    use super::{absolute, retarget};
    use http::{HeaderValue, Request};

    #[test]
    fn a_reference_is_read_relative_to_its_url() {
        let base = "https://a.example:8443/x/y?q=1".parse().unwrap();
        for (reference, expected) in [
            ("http://b.example/z", "http://b.example/z"),
            ("//b.example/z?r=//", "https://b.example/z?r=//"),
            ("/z#part", "https://a.example:8443/z"),
            ("z", "https://a.example:8443/x/z"),
            ("../z?u=a:b", "https://a.example:8443/x/../z?u=a:b"),
            ("?r=2", "https://a.example:8443/x/y?r=2"),
            ("javascript:alert", "javascript:alert"),
        ] {
            assert_eq!(absolute(&base, reference), expected, "{reference}");
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        let names = |to: &str| {
            let mut key = HeaderValue::from_static("s3cret");
            key.set_sensitive(true);
            let request =
                Request::get("https://a.example/x").header("authorization", "Bearer x").header("accept", "a/b");
            let mut request = request.header("x-api-key", key).body(()).unwrap();
            retarget(&mut request, to.parse().unwrap());
            assert_eq!(request.uri(), to);
            request.headers().keys().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("https://a.example/y"), ["authorization", "accept", "x-api-key"]);
        for elsewhere in ["https://b.example/x", "https://a.example:8443/x", "http://a.example/x"] {
            assert_eq!(names(elsewhere), ["accept"], "{elsewhere}");
        }
    }
}
