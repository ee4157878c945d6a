//! What is done to the server: round after round it is started, let live for a while, frozen now and then, and killed.
//! Some are killed while they start, some while frozen, and some are stopped in order.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::child::{Child, Home, LEASE};
use super::client::Client;
use super::dice::Dice;
use super::load::{Place, World};

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    pub(super) freezes: u64,
    /// Of the freezes, those that lasted longer than a lease.
    pub(super) long_freezes: u64,
    pub(super) stops: u64,
    /// What the server did that it should not: ended by itself, did not start, did not stop.
    pub(super) misdeeds: Vec<String>,
}

#[cfg(feature = "postgres")]
impl Deeds {
    /// Adds what was done to another server.
    pub(super) fn add(&mut self, other: Self) {
        self.freezes += other.freezes;
        self.long_freezes += other.long_freezes;
        self.stops += other.stops;
        self.misdeeds.extend(other.misdeeds);
    }
}

/// How long a server lives after it is ready.
const LIFE_MS: (u64, u64) = (150, 2_600);
/// The same when kills are behind the plan.
const SHORT_LIFE_MS: (u64, u64) = (100, 600);
/// At least one kill in so long is what the verdict wants; this leaves room.
const KILL_EVERY: Duration = Duration::from_secs(3);
/// A server that misbehaves so often is given up.
const MISDEEDS_MAX: usize = 5;
/// How long a kill waits for somebody to be in the middle of a send.
const VICTIM_WAIT: Duration = Duration::from_millis(300);

/// A server that is killed again and again.
pub(super) struct Victim<'a> {
    pub(super) home: &'a Home,
    /// Asks it whether it is ready.
    pub(super) client: &'a Client,
    pub(super) world: &'a World,
    pub(super) place: Place,
}

impl Victim<'_> {
    /// Kills servers until the run is `over`, and leaves one that runs; none, if the server does not start any more.
    pub(super) async fn suffer(&self, mut dice: Dice, over: impl Fn() -> bool) -> (Option<Child>, Deeds) {
        let mut deeds = Deeds::default();
        let begun = Instant::now();
        while !over() {
            let kills = u32::try_from(self.world.kills(self.place) + 1).unwrap_or(u32::MAX);
            let behind = begun.elapsed() > KILL_EVERY * kills;
            if let Err(misdeed) = self.round(&mut dice, behind, &mut deeds).await {
                deeds.misdeeds.push(misdeed);
                // One that does not start will not start the next time either.
                if deeds.misdeeds.len() >= MISDEEDS_MAX {
                    return (None, deeds);
                }
            }
        }
        match self.start_and_wait().await {
            Ok(child) => (Some(child), deeds),
            Err(misdeed) => {
                deeds.misdeeds.push(misdeed);
                (None, deeds)
            }
        }
    }

    pub(super) async fn start_and_wait(&self) -> Result<Child, String> {
        let mut child = self.start()?;
        self.home.ready(&mut child, self.client).await?;
        Ok(child)
    }

    fn start(&self) -> Result<Child, String> {
        self.home.start().map_err(|error| format!("the server could not be started: {error}"))
    }

    async fn round(&self, dice: &mut Dice, behind: bool, deeds: &mut Deeds) -> Result<(), String> {
        let mut child = self.start()?;
        if dice.one_in(7) {
            // Somewhere between being started and being ready.
            sleep(Duration::from_millis(dice.below(120))).await;
            self.kill(child).await;
            return Ok(());
        }
        self.home.ready(&mut child, self.client).await?;
        let (least, most) = if behind { SHORT_LIFE_MS } else { LIFE_MS };
        let life = Duration::from_millis(dice.between(least, most));
        let end = Instant::now() + life;
        let freezes = !behind && dice.one_in(3);
        if freezes {
            sleep(life.mul_f64(0.5)).await;
            if freeze(dice, &child, deeds).await {
                self.kill(child).await;
                return Ok(());
            }
        }
        sleep_until(end).await;
        if let Some(status) = child.ended() {
            return Err(format!("the server ended by itself: {status}; its log says why"));
        }
        if dice.one_in(9) {
            deeds.stops += 1;
            return child.stop().await;
        }
        let patience = Instant::now() + VICTIM_WAIT;
        while !self.world.has_unanswered_send() && Instant::now() < patience {
            sleep(Duration::from_millis(1)).await;
        }
        self.kill(child).await;
        Ok(())
    }

    async fn kill(&self, child: Child) {
        child.kill();
        self.world.note_kill(self.place);
        child.buried().await;
    }
}

/// Freezes the server for a while. True if it is to die without being thawed.
async fn freeze(dice: &mut Dice, child: &Child, deeds: &mut Deeds) -> bool {
    let lease_ms = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX);
    let is_long = dice.one_in(3);
    let (least, most) = if is_long { (lease_ms * 6 / 5, lease_ms * 3) } else { (20, lease_ms * 7 / 10) };
    let dies_frozen = dice.one_in(5);
    child.freeze();
    deeds.freezes += 1;
    deeds.long_freezes += u64::from(is_long);
    sleep(Duration::from_millis(dice.between(least, most))).await;
    if !dies_frozen {
        child.thaw();
    }
    dies_frozen
}
