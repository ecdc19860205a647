//! Numbers of JSON, as they are read and written.

use std::io::Write;

use crate::domain::MAX_SAFE_INTEGER;

/// The greatest integer of an item; the least is its negative.
pub(super) const MAX_INTEGER: i64 = MAX_SAFE_INTEGER as i64;

/// Reads a JSON number that is an integer of at most 2^53 - 1, written without a fraction or an exponent.
pub(super) fn integer(text: &str) -> Option<i64> {
    let number = text.parse().ok()?;
    (-MAX_INTEGER..=MAX_INTEGER).contains(&number).then_some(number)
}

/// Reads a JSON number as the nearest double, if there is a finite one.
pub(super) fn double(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Writes a finite double as RFC 8785 and ECMAScript (ECMA-262, `Number::toString`) do: `1`, `0.1`, `1e+21`.
pub(super) fn write_double(number: f64, out: &mut Vec<u8>) {
    // Both zeros are `0`. All digits of a whole number below 10^16 are needed.
    if number.fract() == 0.0 && number.abs() < 1e16 {
        return write_integer(number as i64, out);
    }
    let Some((digits, exponent)) = decimal_parts(number) else { return out.push(b'0') };
    let (digits, count) = (digits.to_string(), digits.ilog10() as i32 + 1);
    // The power of ten of the first digit.
    let exponent = exponent + count - 1;
    if number < 0.0 {
        out.push(b'-');
    }
    let zeros = |out: &mut Vec<u8>, count: i32| out.resize(out.len() + count.max(0) as usize, b'0');
    let pointed = |out: &mut Vec<u8>, whole: i32| {
        let (whole, fraction) = digits.split_at(whole.min(count) as usize);
        out.extend_from_slice(whole.as_bytes());
        if !fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(fraction.as_bytes());
        }
    };
    match exponent {
        -6..0 => {
            out.extend_from_slice(b"0.");
            zeros(out, -exponent - 1);
            out.extend_from_slice(digits.as_bytes());
        }
        0..21 => {
            pointed(out, exponent + 1);
            zeros(out, exponent + 1 - count);
        }
        _ => {
            pointed(out, 1);
            out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
            write_integer(i64::from(exponent.abs()), out);
        }
    }
}

/// Writes decimal digits.
pub(super) fn write_integer(number: i64, out: &mut Vec<u8>) {
    write!(out, "{number}").expect("a vector takes all bytes");
}

/// Whether `number` is a multiple of `of`, which is positive: both as the shortest decimal numbers that a double is
/// written with, so that `0.3` is a multiple of `0.1`.
pub(super) fn is_multiple(number: f64, of: f64) -> bool {
    let (Some((digits, exponent)), Some((of, of_exponent))) = (decimal_parts(number), decimal_parts(of))
    else {
        return number == 0.0;
    };
    let (digits, of) = (u128::from(digits), u128::from(of));
    match exponent - of_exponent {
        // Digits are below 10^17, so a product of two remainders fits.
        shift @ 0.. => {
            let mut remainder = digits % of;
            for _ in 0..shift {
                remainder = remainder * 10 % of;
            }
            remainder == 0
        }
        // 10^20 is more than any digits.
        shift @ -20..0 => digits % (of * 10_u128.pow(shift.unsigned_abs())) == 0,
        _ => false,
    }
}

/// `digits * 10^exponent`, without trailing zeros: the shortest digits that read back the same, the even ones of two. `None`
/// for zero.
fn decimal_parts(number: f64) -> Option<(u64, i32)> {
    // The same digits as ECMAScript's. The standard library's are the odd ones of two.
    let text = serde_json::to_string(&number.abs()).ok()?;
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut digits: u64 = [whole, fraction].concat().parse().ok()?;
    let mut exponent = exponent.parse::<i32>().ok()? - fraction.len() as i32;
    if digits == 0 {
        return None;
    }
    while digits.is_multiple_of(10) {
        (digits, exponent) = (digits / 10, exponent + 1);
    }
    Some((digits, exponent))
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
    fn multiples_are_decimal() {
        for (number, of) in [
            (0.3, 0.1),
            (4.35, 0.01),
            (1e22, 1.0),
            (1e300, 7e-300_f64.max(1e-5)),
            (0.0, 0.1),
            (-7.5, 2.5),
            (1e-7, 1e-8),
            (19.99, 0.01),
        ] {
            assert!(is_multiple(number, of), "{number} of {of}");
        }
        for (number, of) in [(0.35, 0.1), (1e-8, 1e-7), (10.0, 3.0), (1e22, 3.0), (5e-324, 1e300)] {
            assert!(!is_multiple(number, of), "{number} of {of}");
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
