//! Reckoning with dates and times: sums, differences, truncation, as Java reckons.

use super::units::{Amount, DAY, Unit, exact, too_far};
use crate::lang::error::Error;
use crate::lang::value::time::{Period, Time};
use jiff::civil::{self, Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp, Zoned};
use std::cmp::Ordering;

/// The first day of Unix time.
const EPOCH: Date = civil::date(1970, 1, 1);

/// Days since 1970-01-01.
pub fn epoch_day(date: Date) -> i64 {
    date.duration_since(EPOCH).as_hours() / 24
}

/// The date so many days after another.
///
/// # Errors
/// `ArithmeticError` outside of the calendar.
pub fn plus_days(date: Date, days: i64) -> Result<Date, Error> {
    let span = Span::new().try_days(days).map_err(|_| too_far())?;
    date.checked_add(span).map_err(|_| too_far())
}

/// The date so many days after 1970-01-01.
///
/// # Errors
/// `ArithmeticError` outside of the calendar.
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

/// The date so many months after another; a day that its month lacks becomes the month's last.
///
/// # Errors
/// `ArithmeticError` outside of the calendar.
pub fn plus_months(date: Date, months: i64) -> Result<Date, Error> {
    of_month_index(month_index(date).checked_add(months).ok_or_else(too_far)?, date.day())
}

/// The day and time of day that a zone's clocks show, as a point in time. In a gap the clocks are past it;
/// of two such times the one at that distance from UTC is meant, else the earlier one.
///
/// # Errors
/// `ArithmeticError` outside of the calendar.
pub fn in_zone(local: DateTime, zone: &TimeZone, near: Option<Offset>) -> Result<Zoned, Error> {
    let ambiguous = zone.to_ambiguous_zoned(local);
    let later = matches!(ambiguous.offset(), AmbiguousOffset::Fold { after, .. } if near == Some(after));
    if later { ambiguous.later() } else { ambiguous.compatible() }.map_err(|_| too_far())
}

/// The day and time of day of whatever has one.
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

/// The same kind of value with another day and time of day.
///
/// # Errors
/// `ArithmeticError` outside of the calendar.
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

/// A time so much later: months first, then days, then what is exact.
///
/// # Errors
/// `ArithmeticError`, and `TypeError` for units that this kind of time does not have.
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
        Time::Zone(_) => Err(Error::new("TypeError", "a time zone is no time")),
    }
}

/// Nanoseconds since midnight.
pub fn clock_nanos(clock: civil::Time) -> i128 {
    clock.duration_since(civil::Time::midnight()).as_nanos()
}

/// The time of day so many nanoseconds after midnight, of which there are less than a day's.
pub fn clock_of(nanos: i128) -> civil::Time {
    let small = SignedDuration::try_from_nanos_i128(nanos).unwrap_or_default();
    civil::Time::midnight().checked_add(small).unwrap_or_default()
}

/// A time with everything below a unit, or a number of them, cut off. Weeks begin on Mondays.
///
/// # Errors
/// `ArithmeticError`, `TypeError`.
pub fn truncate(time: &Time, count: i64, unit: Unit) -> Result<Time, Error> {
    if count < 1 {
        return Err(Error::new("ArgumentError", format!("expected a positive number of units, got {count}")));
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
        // The hour of a time that occurs twice stays the same one of the two.
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

/// The nanoseconds of a unit that always has as many.
pub fn length(unit: Unit) -> Option<i128> {
    match unit {
        Unit::Exact(nanos) => Some(nanos.into()),
        Unit::Days(days) => Some(i128::from(days) * DAY),
        Unit::Months(_) | Unit::Years(_) => None,
    }
}

/// The zone that a time brings along: none for dates and for what a clock on any wall shows.
pub fn zone_of(time: &Time) -> Option<TimeZone> {
    match time {
        Time::Instant(_) => Some(TimeZone::UTC),
        Time::Zoned(zoned) => Some(zoned.time_zone().clone()),
        _ => None,
    }
}

/// The point in time; what has no zone of its own is read in that one.
///
/// # Errors
/// `ArithmeticError`, `TypeError`.
pub fn timestamp(time: &Time, zone: &TimeZone) -> Result<Timestamp, Error> {
    match time {
        Time::Instant(at) => Ok(*at),
        Time::Zoned(zoned) => Ok(zoned.timestamp()),
        Time::Date(_) | Time::DateTime(_) | Time::YearMonth(_) => match local(time) {
            Some(local) => Ok(in_zone(local, zone, None)?.timestamp()),
            None => Err(too_far()),
        },
        other => {
            Err(Error::new("TypeError", format!("expected a date or a point in time, got {} ({other})", other.kind())))
        }
    }
}

/// Two times on one clock: what has no zone of its own is read in the other's, else in none.
struct Pair {
    from: DateTime,
    to: DateTime,
    /// What really passes from one to the other
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

/// What passes from one time to another.
///
/// # Errors
/// `TypeError` where the two have nothing in common.
pub fn apart(from: &Time, to: &Time) -> Result<SignedDuration, Error> {
    if let (Time::Duration(from), Time::Duration(to)) = (from, to) {
        return to.checked_sub(*from).ok_or_else(too_far);
    }
    Pair::of(from, to).map(|pair| pair.apart)
}

/// How one time stands to another.
///
/// # Errors
/// `TypeError` where the two have nothing in common.
pub fn order(left: &Time, right: &Time) -> Result<Ordering, Error> {
    match left.compare(right) {
        Some(order) => Ok(order),
        None => apart(right, left).map(|apart| apart.as_nanos().cmp(&0)),
    }
}

/// How many whole units pass from one time to another.
///
/// # Errors
/// `TypeError` where the two have nothing in common.
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

/// Whole months from one day and time of day to another.
fn months(from: DateTime, to: DateTime) -> i64 {
    let months = month_index(to.date()) - month_index(from.date());
    let rest = (to.day(), to.time()).cmp(&(from.day(), from.time()));
    match rest {
        Ordering::Less if months > 0 => months - 1,
        Ordering::Greater if months < 0 => months + 1,
        _ => months,
    }
}

/// Years, months and days from one date to another.
///
/// # Errors
/// `ArithmeticError` outside of the calendar.
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
