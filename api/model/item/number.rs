//! Numbers of JSON, as they are read and written.

use std::io::Write;

use crate::domain::MAX_SAFE_INTEGER;

/// The greatest integer of an item; the least is its negative.
pub(crate) const MAX_INTEGER: i64 = MAX_SAFE_INTEGER as i64;

/// Reads a JSON number that is an integer of at most 2^53 - 1, written without a fraction or an exponent.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let number = text.parse().ok()?;
    (-MAX_INTEGER..=MAX_INTEGER).contains(&number).then_some(number)
}

/// Reads a JSON number as the nearest double, if there is a finite one.
pub(crate) fn double(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The shortest digits of the double that is the nearest to a number, as [`write_double`] writes them.
/// `None`: none is near.
pub fn shortest_double(text: &str) -> Option<String> {
    let mut digits = Vec::new();
    write_double(double(text)?, &mut digits);
    String::from_utf8(digits).ok()
}

/// Writes a finite double as RFC 8785 and ECMAScript (ECMA-262, `Number::toString`) do: `1`, `0.1`, `1e+21`.
pub(crate) fn write_double(number: f64, out: &mut Vec<u8>) {
    // Most numbers are whole, and need no search for their shortest digits.
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return write!(out, "{}", number as i64).expect("a vector takes all bytes");
    }
    out.extend_from_slice(ryu_js::Buffer::new().format_finite(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: f64) -> String {
        let mut out = Vec::new();
        write_double(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// RFC 8785, appendix B, and the borders between notations.
    #[test]
    fn doubles_are_written_as_in_ecmascript() {
        for (bits, text) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(written(f64::from_bits(bits)), text);
        }
        for text in ["1", "-1", "0.1", "1.5", "-0.00001", "1e-7", "123456789012345680000", "1.5e+300", "4.5"]
        {
            assert_eq!(written(text.parse().unwrap()), text);
        }
    }

    #[test]
    fn integers_are_plain() {
        assert_eq!(integer("-9007199254740991"), Some(-MAX_INTEGER));
        assert_eq!(integer("-0"), Some(0));
        for text in ["9007199254740992", "1.0", "1e3", "9223372036854775808"] {
            assert_eq!(integer(text), None);
        }
        assert_eq!(double("1e400"), None);
        assert_eq!(double("1e-400"), Some(0.0));
    }
}
