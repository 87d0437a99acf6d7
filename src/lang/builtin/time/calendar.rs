//! Arithmetic on dates and times, with Java's semantics: sums, differences, truncation.

use super::units::{Amount, DAY, Unit, exact, too_far};
use crate::error::Error;
use crate::value::time::{Period, Time};
use jiff::civil::{self, Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp, Zoned};
use std::cmp::Ordering;

/// The first day of Unix time.
const EPOCH: Date = civil::date(1970, 1, 1);

/// Returns the number of days since 1970-01-01.
pub fn epoch_day(date: Date) -> i64 {
    date.duration_since(EPOCH).as_hours() / 24
}

/// Returns the date `days` days after another.
///
/// # Errors
/// Returns `ArithmeticError` if the result is outside of the calendar.
pub fn plus_days(date: Date, days: i64) -> Result<Date, Error> {
    let span = Span::new().try_days(days).map_err(|_| too_far())?;
    date.checked_add(span).map_err(|_| too_far())
}

/// Returns the date `days` days after 1970-01-01.
///
/// # Errors
/// Returns `ArithmeticError` if the result is outside of the calendar.
pub fn of_epoch_day(days: i64) -> Result<Date, Error> {
    plus_days(EPOCH, days)
}

fn month_index(date: Date) -> i64 {
    i64::from(date.year()) * 12 + i64::from(date.month()) - 1
}

fn of_month_index(index: i64, day: i8) -> Result<Date, Error> {
    let year = i16::try_from(index.div_euclid(12)).map_err(|_| too_far())?;
    let first = Date::new(year, index.rem_euclid(12) as i8 + 1, 1).map_err(|_| too_far())?;
    Date::new(first.year(), first.month(), day.min(first.days_in_month())).map_err(|_| too_far())
}

/// Returns the date `months` months after another. A day that the resulting month lacks becomes the month's last day.
///
/// # Errors
/// Returns `ArithmeticError` if the result is outside of the calendar.
pub fn plus_months(date: Date, months: i64) -> Result<Date, Error> {
    of_month_index(month_index(date).checked_add(months).ok_or_else(too_far)?, date.day())
}

/// Resolves a local date and time in a time zone. A local time in a gap is shifted forward past the gap. Of two
/// possible times in a fold, the later one is chosen if its UTC offset is `near`, and the earlier one otherwise.
///
/// # Errors
/// Returns `ArithmeticError` if the result is outside of the calendar.
pub fn in_zone(local: DateTime, zone: &TimeZone, near: Option<Offset>) -> Result<Zoned, Error> {
    let ambiguous = zone.to_ambiguous_zoned(local);
    let later = matches!(ambiguous.offset(), AmbiguousOffset::Fold { after, .. } if near == Some(after));
    if later { ambiguous.later() } else { ambiguous.compatible() }.map_err(|_| too_far())
}

/// Returns the local date and time of a value, or `None` for durations, periods and zones.
pub fn local(time: &Time) -> Option<DateTime> {
    Some(match time {
        Time::Instant(at) => TimeZone::UTC.to_datetime(*at),
        Time::Date(date) | Time::YearMonth(date) => date.to_datetime(civil::Time::midnight()),
        Time::DateTime(local) => *local,
        Time::Zoned(zoned) => zoned.datetime(),
        Time::Clock(clock) => EPOCH.to_datetime(*clock),
        Time::Duration(_) | Time::Period(_) | Time::Zone(_) => return None,
    })
}

/// Returns a value of the same kind with another local date and time.
///
/// # Errors
/// Returns `ArithmeticError` if the result is outside of the calendar.
pub fn with_local(time: &Time, local: DateTime) -> Result<Time, Error> {
    Ok(match time {
        Time::Instant(_) => Time::Instant(Offset::UTC.to_timestamp(local).map_err(|_| too_far())?),
        Time::Date(_) => Time::Date(local.date()),
        Time::YearMonth(_) => Time::YearMonth(local.date().first_of_month()),
        Time::Clock(_) => Time::Clock(local.time()),
        Time::Zoned(zoned) => Time::Zoned(Box::new(in_zone(local, zoned.time_zone(), Some(zoned.offset()))?)),
        _ => Time::DateTime(local),
    })
}

fn later_by(zoned: &Zoned, nanos: i128) -> Result<Zoned, Error> {
    let at = zoned.timestamp().checked_add(exact(nanos)?).map_err(|_| too_far())?;
    Ok(at.to_zoned(zoned.time_zone().clone()))
}

/// Adds an amount to a time: first its months, then its days, then its exact part.
///
/// # Errors
/// Returns `ArithmeticError` if the result is out of range, or `TypeError` for units that this kind of time does not
/// have.
pub fn plus(time: &Time, amount: Amount) -> Result<Time, Error> {
    let Amount { days, nanos, .. } = amount;
    let months = amount.total_months()?;
    let lacks = |what: &str| Err(Error::new("TypeError", format!("{} has no {what}", time.kind())));
    match time {
        Time::Date(date) if nanos != 0 => plus(&Time::DateTime(date.to_datetime(civil::Time::midnight())), amount),
        Time::Date(date) => Ok(Time::Date(plus_days(plus_months(*date, months)?, days)?)),
        Time::YearMonth(_) if days != 0 || nanos != 0 => lacks("days"),
        Time::YearMonth(first) => Ok(Time::YearMonth(plus_months(*first, months)?)),
        Time::Clock(_) if months != 0 || days != 0 => lacks("days"),
        Time::Clock(clock) => {
            let sum = (clock_nanos(*clock) + nanos % DAY).rem_euclid(DAY);
            Ok(Time::Clock(clock_of(sum)))
        }
        Time::Instant(_) | Time::DateTime(_) | Time::Zoned(_) => {
            let moved = match local(time) {
                Some(local) if months != 0 || days != 0 => {
                    let date = plus_days(plus_months(local.date(), months)?, days)?;
                    with_local(time, date.to_datetime(local.time()))?
                }
                _ => time.clone(),
            };
            match moved {
                Time::Zoned(zoned) => Ok(Time::Zoned(Box::new(later_by(&zoned, nanos)?))),
                Time::Instant(at) => Ok(Time::Instant(at.checked_add(exact(nanos)?).map_err(|_| too_far())?)),
                Time::DateTime(local) => Ok(Time::DateTime(local.checked_add(exact(nanos)?).map_err(|_| too_far())?)),
                other => Ok(other),
            }
        }
        Time::Duration(duration) => {
            let sum = amount.duration()?;
            duration
                .checked_add(sum)
                .map(Time::Duration)
                .ok_or_else(|| Error::new("ArithmeticError", "the duration is too long"))
        }
        Time::Period(period) => {
            let sum = Amount::of_time(&Time::Period(*period)).unwrap_or_default().plus(amount)?;
            sum.period().map(Time::Period)
        }
        Time::Zone(_) => Err(Error::new("TypeError", "a time zone is not a time")),
    }
}

/// Returns the nanoseconds since midnight.
pub fn clock_nanos(clock: civil::Time) -> i128 {
    clock.duration_since(civil::Time::midnight()).as_nanos()
}

/// Returns the time of day `nanos` nanoseconds after midnight, which must be less than a day.
pub fn clock_of(nanos: i128) -> civil::Time {
    let small = SignedDuration::try_from_nanos_i128(nanos).unwrap_or_default();
    civil::Time::midnight().checked_add(small).unwrap_or_default()
}

/// Truncates a time to a multiple of a unit. Weeks begin on Mondays.
///
/// # Errors
/// Returns `ArgumentError` if the count is not positive, `TypeError` if this kind of time cannot be truncated to the
/// unit, or `ArithmeticError` if the result is out of range.
pub fn truncate(time: &Time, count: i64, unit: Unit) -> Result<Time, Error> {
    if count < 1 {
        return Err(Error::unmet("ArgumentError", format!("a positive number of units, got {count}")));
    }
    if let (Time::Duration(duration), Some(each)) = (time, length(unit)) {
        let each = each * i128::from(count);
        return Ok(Time::Duration(exact(duration.as_nanos() / each * each)?));
    }
    let Some(before) = local(time) else {
        return Err(Error::new("TypeError", format!("{} cannot be truncated to that unit", time.kind())));
    };
    let midnight = before.date().to_datetime(civil::Time::midnight());
    let product = |each: i64| count.checked_mul(each).ok_or_else(too_far);
    let floor = |index: i64, step: i64| index.div_euclid(step) * step;
    let after = match unit {
        _ if matches!(time, Time::Clock(_)) && !matches!(unit, Unit::Exact(_)) => midnight,
        Unit::Exact(each) => {
            let (now, each) = (clock_nanos(before.time()), i128::from(each) * i128::from(count));
            before.date().to_datetime(clock_of(now / each * each))
        }
        // 1970-01-01 was a Thursday.
        Unit::Days(7) => start(of_epoch_day(floor(epoch_day(before.date()) + 3, product(7)?) - 3)?),
        Unit::Days(each) => start(of_epoch_day(floor(epoch_day(before.date()), product(each)?))?),
        Unit::Months(each) => start(of_month_index(floor(month_index(before.date()), product(each)?), 1)?),
        Unit::Years(each) => start(of_month_index(
            floor(month_index(before.date()), product(each)?.checked_mul(12).ok_or_else(too_far)?),
            1,
        )?),
    };
    match (time, unit) {
        // Of an hour that occurs twice, keep the same occurrence.
        (Time::Zoned(zoned), Unit::Exact(_)) => {
            let nanos = before.duration_since(after).as_nanos();
            Ok(Time::Zoned(Box::new(later_by(zoned, -nanos)?)))
        }
        _ => with_local(time, after),
    }
}

fn start(date: Date) -> DateTime {
    date.to_datetime(civil::Time::midnight())
}

/// Returns the nanoseconds of a unit of fixed length, where a day has twenty-four hours; `None` for months and years.
pub fn length(unit: Unit) -> Option<i128> {
    match unit {
        Unit::Exact(nanos) => Some(nanos.into()),
        Unit::Days(days) => Some(i128::from(days) * DAY),
        Unit::Months(_) | Unit::Years(_) => None,
    }
}

/// Returns the time zone of a time; `None` for dates and local times.
pub fn zone_of(time: &Time) -> Option<TimeZone> {
    match time {
        Time::Instant(_) => Some(TimeZone::UTC),
        Time::Zoned(zoned) => Some(zoned.time_zone().clone()),
        _ => None,
    }
}

/// Returns the point in time. A date or local time is interpreted in the given zone.
///
/// # Errors
/// Returns `ArithmeticError` if the result is outside of the calendar, or `TypeError` if the value is not a date or a
/// point in time.
pub fn timestamp(time: &Time, zone: &TimeZone) -> Result<Timestamp, Error> {
    match time {
        Time::Instant(at) => Ok(*at),
        Time::Zoned(zoned) => Ok(zoned.timestamp()),
        Time::Date(_) | Time::DateTime(_) | Time::YearMonth(_) => match local(time) {
            Some(local) => Ok(in_zone(local, zone, None)?.timestamp()),
            None => Err(too_far()),
        },
        other => Err(Error::unmet("TypeError", format!("a date or a point in time, got {} ({other})", other.kind()))),
    }
}

/// Two times on a common clock: a time without a zone is interpreted in the zone of the other, or in none if both lack
/// one.
struct Pair {
    from: DateTime,
    to: DateTime,
    /// Elapsed time from one to the other
    apart: SignedDuration,
}

impl Pair {
    fn of(from: &Time, to: &Time) -> Result<Pair, Error> {
        let zone = match (from, to) {
            (Time::Zoned(zoned), _) => Some(zoned.time_zone().clone()),
            (Time::Instant(_), _) => Some(TimeZone::UTC),
            (_, to) => zone_of(to),
        };
        let clocks = matches!(from, Time::Clock(_)) == matches!(to, Time::Clock(_));
        match (zone, local(from), local(to)) {
            (None, Some(from), Some(to)) if clocks => Ok(Pair { from, to, apart: to.duration_since(from) }),
            (Some(zone), Some(_), Some(_)) if clocks => {
                let (from, to) = (timestamp(from, &zone)?, timestamp(to, &zone)?);
                Ok(Pair { from: zone.to_datetime(from), to: zone.to_datetime(to), apart: to.duration_since(from) })
            }
            _ => Err(Error::new("TypeError", format!("cannot compare {} with {}", from.kind(), to.kind()))
                .suggest("give two dates, two points in time, or two times of day")),
        }
    }
}

/// Returns the elapsed time from one time to another.
///
/// # Errors
/// Returns `TypeError` if the two are not comparable, or `ArithmeticError` if the difference of two durations
/// overflows.
pub fn apart(from: &Time, to: &Time) -> Result<SignedDuration, Error> {
    if let (Time::Duration(from), Time::Duration(to)) = (from, to) {
        return to.checked_sub(*from).ok_or_else(too_far);
    }
    Pair::of(from, to).map(|pair| pair.apart)
}

/// Compares two times.
///
/// # Errors
/// Returns `TypeError` if the two are not comparable.
pub fn order(left: &Time, right: &Time) -> Result<Ordering, Error> {
    match left.compare(right) {
        Some(order) => Ok(order),
        None => apart(right, left).map(|apart| apart.as_nanos().cmp(&0)),
    }
}

/// Returns the number of whole units from one time to another.
///
/// # Errors
/// Returns `TypeError` if the two are not comparable, or `ArithmeticError` if the number is out of range.
pub fn between(from: &Time, to: &Time, unit: Unit) -> Result<i64, Error> {
    if let (Time::Duration(_), Time::Duration(_), Some(each)) = (from, to, length(unit)) {
        return i64::try_from(apart(from, to)?.as_nanos() / each).map_err(|_| too_far());
    }
    let pair = Pair::of(from, to)?;
    let count = match unit {
        Unit::Exact(each) => pair.apart.as_nanos() / i128::from(each),
        Unit::Days(each) => pair.to.duration_since(pair.from).as_nanos() / (DAY * i128::from(each)),
        Unit::Months(each) => i128::from(months(pair.from, pair.to) / each),
        Unit::Years(each) => i128::from(months(pair.from, pair.to) / (12 * each)),
    };
    i64::try_from(count).map_err(|_| too_far())
}

/// Returns the number of whole months from one local date and time to another.
fn months(from: DateTime, to: DateTime) -> i64 {
    let months = month_index(to.date()) - month_index(from.date());
    let rest = (to.day(), to.time()).cmp(&(from.day(), from.time()));
    match rest {
        Ordering::Less if months > 0 => months - 1,
        Ordering::Greater if months < 0 => months + 1,
        _ => months,
    }
}

/// Returns the years, months and days from one date to another.
///
/// # Errors
/// Returns `ArithmeticError` if an intermediate date is outside of the calendar.
pub fn period_between(from: Date, to: Date) -> Result<Period, Error> {
    let mut months = month_index(to) - month_index(from);
    let mut days = i64::from(to.day()) - i64::from(from.day());
    if months > 0 && days < 0 {
        months -= 1;
        days = epoch_day(to) - epoch_day(plus_months(from, months)?);
    } else if months < 0 && days > 0 {
        months += 1;
        days -= i64::from(to.days_in_month());
    }
    Amount { years: months / 12, months: months % 12, days, nanos: 0 }.period()
}
