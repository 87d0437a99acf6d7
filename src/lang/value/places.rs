//! Positions of the entries of a table by the hashes of their keys: a flat hash table of a fixed capacity. It holds no
//! keys: the caller compares those of the positions that are found.

/// An open hash table of positions. Nothing is ever removed from it.
#[derive(Clone)]
pub struct Places {
    /// A position plus one, below the upper half of its hash; 0 if the cell is free. At least a third of the cells are
    /// free, and their number is a power of two.
    cells: Box<[u64]>,
    /// The number of positions that may still be added.
    room: usize,
}

impl Places {
    /// Creates a table for that many positions. It takes 12 to 24 bytes for each.
    pub fn with_capacity(capacity: usize) -> Places {
        let cells = (capacity.saturating_add(capacity / 2) + 1).next_power_of_two();
        Places { cells: vec![0; cells].into_boxed_slice(), room: capacity }
    }

    /// Returns whether another position may be added.
    pub fn has_room(&self) -> bool {
        self.room > 0
    }

    /// Returns the position with that hash for which `is_it` holds, or else the free cell for it.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Result<u32, FreeCell> {
        let last = self.cells.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let cell = self.cells[at];
            if cell == 0 {
                return Err(FreeCell(at));
            }
            if cell >> 32 == hash >> 32 {
                let position = cell as u32 - 1;
                if is_it(position) {
                    return Ok(position);
                }
            }
            at = (at + 1) & last;
        }
    }

    /// Adds a position with that hash, for which `find` has returned the free cell just now. There must be room.
    #[inline]
    pub fn add(&mut self, FreeCell(at): FreeCell, hash: u64, position: u32) {
        debug_assert!(self.has_room() && self.cells[at] == 0);
        self.cells[at] = (hash >> 32 << 32) | u64::from(position + 1);
        self.room -= 1;
    }
}

/// A free cell of a table.
pub struct FreeCell(usize);
