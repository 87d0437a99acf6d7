//! Numbers in words and in Roman numerals.

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

const SCALES: [&str; 7] = ["", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion"];

/// Spells out a number below a thousand.
fn hundreds(number: u64) -> String {
    let below = match number % 100 {
        0 if number > 0 => String::new(),
        small @ 0..20 => SMALL[small as usize].to_string(),
        other if other.is_multiple_of(10) => TENS[(other / 10) as usize].to_string(),
        other => format!("{}-{}", TENS[(other / 10) as usize], SMALL[(other % 10) as usize]),
    };
    match (number / 100, below.is_empty()) {
        (0, _) => below,
        (hundred, true) => format!("{} hundred", SMALL[hundred as usize]),
        (hundred, false) => format!("{} hundred {below}", SMALL[hundred as usize]),
    }
}

/// Spells out a cardinal number: `forty-two`.
pub fn cardinal(number: i64) -> String {
    let mut groups = Vec::new();
    let mut rest = number.unsigned_abs();
    while rest > 0 {
        groups.push(rest % 1_000);
        rest /= 1_000;
    }
    let words: Vec<String> = (0..groups.len())
        .rev()
        .filter(|place| groups[*place] > 0)
        .map(|place| format!("{} {}", hundreds(groups[place]), SCALES[place]).trim_end().to_string())
        .collect();
    match (number < 0, words.is_empty()) {
        (_, true) => SMALL[0].to_string(),
        (true, false) => format!("minus {}", words.join(", ")),
        (false, false) => words.join(", "),
    }
}

/// Spells out an ordinal number: `forty-second`.
pub fn ordinal(number: i64) -> String {
    let words = cardinal(number);
    let at = words.rfind([' ', '-']).map_or(0, |at| at + 1);
    let (before, last) = words.split_at(at);
    let last = match last {
        "one" => "first".to_string(),
        "two" => "second".to_string(),
        "three" => "third".to_string(),
        "five" => "fifth".to_string(),
        "eight" => "eighth".to_string(),
        "nine" => "ninth".to_string(),
        "twelve" => "twelfth".to_string(),
        tens if tens.ends_with('y') => format!("{}ieth", &tens[..tens.len() - 1]),
        other => format!("{other}th"),
    };
    format!("{before}{last}")
}

/// Formats 1 to 3,999 as a Roman numeral, such as `XLII`; with `old` in purely additive notation (`IIII` for four).
pub fn roman(number: i64, old: bool) -> Option<String> {
    const NUMERALS: [(i64, &str); 13] = [
        (1_000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..4_000).contains(&number) {
        return None;
    }
    let mut rest = number;
    let mut out = String::new();
    for (value, numeral) in NUMERALS.iter().filter(|(_, numeral)| !old || numeral.len() == 1) {
        while rest >= *value {
            out.push_str(numeral);
            rest -= value;
        }
    }
    Some(out)
}
